"""Missing and damaged transaction indexes: they are rebuilt, and no aborted transaction is hidden meanwhile."""

import logging

import pytest

from quire.storage.indexes import index_file
from quire.storage.indexes.offset_index import OffsetIndex
from simulator.disk import SimDisk
from simulator.random import SimRandom
from tests.storage.batches import FOLDER, append, batch, marker, open_log, read_all
from tests.storage.transactional_log import (
    ABORTED,
    CONFIG,
    aborted,
    all_aborted,
    index_files,
    transactional,
    written,
)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", ["torn", "zeroed", "emptied", "offset", "version"])
def test_a_malformed_index_is_rebuilt_at_start(
    disk: SimDisk, caplog: pytest.LogCaptureFixture, clean: bool, damage: str
) -> None:
    written(disk).close()
    right = index_files(disk)
    for name, content in right.items():
        file = disk.open(f"{FOLDER}/{name}")
        if damage == "torn":
            file.truncate(len(content) - 5)
        elif damage == "emptied":
            file.truncate(0)
        elif damage == "zeroed":
            file.pwritev([bytes(len(content))], 0)
        else:
            file.pwritev([b"\x70"], 10 if damage == "offset" else 0)
    with caplog.at_level(logging.WARNING):
        again = open_log(disk, CONFIG, clean=clean, recovery_point=13)
    assert "txnindex" in caplog.text
    assert all_aborted(again) == ABORTED
    assert read_all(again)
    again.close()
    assert index_files(disk) == right


def test_a_wrong_offset_index_hides_no_aborted_transaction(disk: SimDisk) -> None:
    log = written(disk)
    told = aborted(log, 0, max_bytes=CONFIG.segment_bytes)
    assert ABORTED[:2] == told
    log.close()
    file = disk.open(f"{FOLDER}/{0:020}.index")
    file.truncate(0)
    file.pwritev([OffsetIndex.ENTRY.pack(1, 0x7FFF_FFFF)], 0)
    assert aborted(open_log(disk, CONFIG, clean=True), 0, max_bytes=CONFIG.segment_bytes) == told


def test_an_index_that_went_missing_with_another_is_rebuilt_at_start(disk: SimDisk) -> None:
    written(disk).close()
    right = index_files(disk)
    for name in right:
        disk.remove(f"{FOLDER}/{name}")
        disk.remove(f"{FOLDER}/{name.replace('.txnindex', '.index')}")
    again = open_log(disk, CONFIG, clean=True)
    assert all_aborted(again) == ABORTED
    again.close()
    assert index_files(disk) == right


@pytest.mark.parametrize("clean", [True, False])
def test_an_index_that_went_missing_alone_is_rebuilt_at_start(disk: SimDisk, clean: bool) -> None:
    written(disk).close()
    right = index_files(disk)
    assert len(right) > 1, "one of them is of an inactive segment"
    for name in right:
        disk.remove(f"{FOLDER}/{name}")
    again = open_log(disk, CONFIG, clean=clean, recovery_point=13)
    assert all_aborted(again) == ABORTED
    again.close()
    assert index_files(disk) == right


def test_an_index_that_lost_its_last_entry_is_rebuilt_at_start(disk: SimDisk) -> None:
    written(disk).close()
    right = index_files(disk)
    for name, content in right.items():
        disk.open(f"{FOLDER}/{name}").truncate(len(content) - 34)
    again = open_log(disk, CONFIG, clean=True, recovery_point=13)
    assert all_aborted(again) == ABORTED
    again.close()
    assert index_files(disk) == right


def test_an_index_that_goes_missing_while_it_is_not_in_memory_is_rebuilt_at_start(
    disk: SimDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_file, "CACHE_BYTES", 0)
    log = written(disk)
    log.roll(0)
    for segment in log.segments:
        segment.transaction_index.unload()
    for name in index_files(disk):
        disk.remove(f"{FOLDER}/{name}")
    assert all_aborted(log) == ABORTED


def test_no_log_is_scanned_for_an_index_that_was_never_there(disk: SimDisk, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(disk, CONFIG)
    for _ in range(30):
        append(log, batch())
    assert len(log.segments) > 1
    log.close()
    open_log(disk, CONFIG, clean=True, recovery_point=log.end_offset)
    assert "rebuilt" not in caplog.text


def test_files_of_apache_kafka_have_no_count_and_are_trusted(disk: SimDisk) -> None:
    written(disk).close()
    for name in index_files(disk):
        disk.remove(f"{FOLDER}/{name.replace('.txnindex', '.aborted')}")
    assert all_aborted(open_log(disk, CONFIG, clean=True, recovery_point=13)) == ABORTED


def test_a_count_goes_with_its_index(disk: SimDisk) -> None:
    log = written(disk)
    log.roll(0)
    assert [name for name in disk.list_dir(FOLDER) if name.endswith(".aborted")]
    log.delete_records_before(13)
    assert not [name for name in disk.list_dir(FOLDER) if name.endswith(".aborted")]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("clean", [True, False])
def test_a_power_loss_after_missing_indexes_were_rebuilt_hides_no_aborted_transaction(
    disk: SimDisk, clean: bool, seed: int
) -> None:
    written(disk).close()
    for name in index_files(disk):
        for suffix in (".txnindex", ".index", ".timeindex"):
            disk.remove(f"{FOLDER}/{name.replace('.txnindex', suffix)}")
    disk.sync_dir(FOLDER)
    open_log(disk, CONFIG, clean=clean, recovery_point=13)
    again = open_log(disk.crash(SimRandom(seed)), CONFIG, recovery_point=13)
    assert all_aborted(again) == ABORTED
    assert len(read_all(again, 2)) == 11


def test_an_index_left_by_a_log_that_is_empty_now_counts_for_nothing(disk: SimDisk) -> None:
    written(disk).close()
    name = f"{FOLDER}/{13:020d}"
    for base in [name[:20] for name in disk.list_dir(FOLDER) if name.endswith(".log")]:
        for suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
            if disk.exists(f"{FOLDER}/{base}{suffix}"):
                disk.remove(f"{FOLDER}/{base}{suffix}")
    for suffix, content in ((".log", b""), (".index", b""), (".timeindex", b""), (".txnindex", bytes(34))):
        disk.open(name + suffix, create=True).pwritev([content], 0)
    log = open_log(disk, CONFIG, clean=True, log_start_offset=13)
    append(log, batch())
    assert aborted(log, 13) == []
    log.close()
    assert index_files(disk) == {}


def test_an_empty_index_that_says_the_truth_is_looked_into_only_once(
    disk: SimDisk, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(disk, CONFIG)
    append(log, transactional(1, 0))
    append(log, marker(1, aborts=False))
    log.close()
    disk.open(f"{FOLDER}/{0:020d}.txnindex", create=True)
    for times in (1, 1):
        open_log(disk, CONFIG, clean=True).close()
        assert (caplog.text.count("rebuilt"), index_files(disk)) == (times, {})


def test_snapshots_of_scanned_segments_are_rewritten(disk: SimDisk) -> None:
    written(disk).close()
    snapshots = {
        name: disk.read_file(f"{FOLDER}/{name}") for name in disk.list_dir(FOLDER) if name.endswith(".snapshot")
    }
    assert len(snapshots) > 3
    for name in snapshots:
        disk.open(f"{FOLDER}/{name}").truncate(3)
    open_log(disk, CONFIG).close()
    assert {name: disk.read_file(f"{FOLDER}/{name}") for name in snapshots} == snapshots
