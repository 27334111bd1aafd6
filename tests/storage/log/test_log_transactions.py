"""Transactions in a log: readers know what was aborted, through rolls, truncations, crashes and damage."""

import logging

import pytest

from quire.storage.indexes import index_file
from quire.storage.indexes.offset_index import OffsetIndex
from quire.storage.indexes.transaction_index import AbortedTransaction
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.producers import producer_replay
from simulator.disk import SimDisk
from simulator.random import SimRandom
from tests.storage.batches import FOLDER, append, batch, marker, open_log, read, read_all, replicate

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100)
ABORTED = [AbortedTransaction(1, 0, 5, 1), AbortedTransaction(2, 1, 7, 8), AbortedTransaction(1, 9, 12, 13)]


ENDED = [(5, 0), (7, 1), (10, 8), (12, 9)]
"""Every marker, with the first offset of its transaction."""


def transactional(producer_id: int, sequence: int) -> bytearray:
    value = f"{producer_id}/{sequence}".encode().ljust(60, b".")
    return batch(value, producer_id=producer_id, producer_epoch=0, sequence=sequence, transactional=True)


def written(disk: SimDisk) -> Log:
    """Offsets 0 to 12 in segments of three batches, with aborted transactions that span several segments.

    0 by 1 | 1 by 2 | 2 plain | 3 by 1 | 4 by 2 | 5 ABORT 1 | 6 plain | 7 ABORT 2
    8 by 3 | 9 by 1 | 10 COMMIT 3 | 11 by 1 | 12 ABORT 1
    """
    log = open_log(disk, CONFIG)
    plain = bytes(60)
    append(log, transactional(1, 0))
    append(log, transactional(2, 0))
    append(log, batch(plain))
    append(log, transactional(1, 1))
    append(log, transactional(2, 1))
    append(log, marker(1, aborts=True))
    append(log, batch(plain))
    append(log, marker(2, aborts=True))
    append(log, transactional(3, 0))
    append(log, transactional(1, 2))
    append(log, marker(3, aborts=False))
    append(log, transactional(1, 3))
    append(log, marker(1, aborts=True))
    return log


def aborted(log: Log, offset: int = 0, max_bytes: int = 1) -> list[AbortedTransaction]:
    part = read(log, offset, max_bytes)
    assert part is not None
    return log.aborted_transactions(offset, part)


def all_aborted(log: Log) -> list[AbortedTransaction]:
    found = dict.fromkeys(each for offset in range(log.start_offset, log.end_offset) for each in aborted(log, offset))
    return sorted(found, key=lambda each: each.last_offset)


def index_files(disk: SimDisk) -> dict[str, bytes]:
    names = [name for name in disk.list_dir(FOLDER) if name.endswith(".txnindex")]
    return {name: disk.read_file(f"{FOLDER}/{name}") for name in names}


def test_a_reader_learns_of_aborted_transactions_though_their_markers_are_in_later_segments(disk: SimDisk) -> None:
    log = written(disk)
    assert len(log.segments) > 3
    assert ABORTED[0] in aborted(log, 0)
    assert ABORTED[1] in aborted(log, 1)
    assert ABORTED[1] in aborted(log, 6), "which is over only with its marker"
    assert ABORTED[2] not in aborted(log, 0)
    assert aborted(log, 11) == [ABORTED[2]]
    assert all_aborted(log) == ABORTED


def test_a_reader_gets_no_more_aborted_transactions_than_the_slice_needs(disk: SimDisk) -> None:
    log = open_log(disk, LogConfig(index_interval_bytes=100))
    for sequence in range(50):
        append(log, transactional(1, sequence))
        append(log, marker(1, aborts=True))
    assert len(aborted(log, 0)) <= 3
    assert len(aborted(log, 40, max_bytes=1000)) <= 8
    assert len(aborted(log, 0, max_bytes=1 << 20)) == 50


def test_a_log_without_aborted_transactions_has_no_index_of_them(disk: SimDisk) -> None:
    log = open_log(disk, CONFIG)
    for sequence in range(9):
        append(log, transactional(1, sequence))
    append(log, marker(1, aborts=False))
    assert aborted(log, 0) == []
    log.close()
    assert index_files(disk) == {}


def test_a_follower_has_the_same_index(disk: SimDisk) -> None:
    leader = written(disk)
    follower = open_log(disk, CONFIG, folder="data/orders-1")
    offset = 0
    while (part := read(leader, offset)) is not None:
        info = replicate(follower, bytearray(part.read()))
        offset = info.last_offset + 1
    assert all_aborted(follower) == ABORTED
    assert follower.producer_state.first_open_transaction_offset is None


class TestUncommittedMarkers:
    """They hold the last stable offset back; which they are follows from the log, not from its writer."""

    def test_a_leader_and_a_follower_have_the_same(self, disk: SimDisk) -> None:
        leader = written(disk)
        follower = open_log(disk, CONFIG, folder="data/orders-1")
        replicate_all(leader, follower)
        assert list(leader.uncommitted_markers.entries) == ENDED
        assert list(follower.uncommitted_markers.entries) == ENDED

    @pytest.mark.parametrize("clean", [True, False])
    @pytest.mark.parametrize("recovery_point", [0, 5, 13])
    def test_a_log_is_opened_with_those_from_the_high_watermark_on(
        self, disk: SimDisk, clean: bool, recovery_point: int
    ) -> None:
        written(disk).close()
        for high_watermark in range(15):
            again = open_log(disk, CONFIG, clean=clean, recovery_point=recovery_point, high_watermark=high_watermark)
            assert list(again.uncommitted_markers.entries) == [each for each in ENDED if each[0] >= high_watermark]
            again.close()

    def test_a_kill_leaves_what_the_log_has(self, disk: SimDisk) -> None:
        written(disk)
        assert list(open_log(disk.kill(), CONFIG, high_watermark=6).uncommitted_markers.entries) == ENDED[1:]

    def test_a_transaction_without_records_here_holds_nothing_back(self, disk: SimDisk) -> None:
        log = open_log(disk, CONFIG)
        append(log, batch())
        append(log, marker(1, aborts=True))
        assert not log.uncommitted_markers.entries
        log.close()
        assert not open_log(disk, CONFIG, high_watermark=0).uncommitted_markers.entries

    @pytest.mark.parametrize("offset", range(14))
    def test_a_truncated_marker_is_none_and_its_transaction_is_open_again(self, disk: SimDisk, offset: int) -> None:
        log = written(disk)
        log.truncate_to(offset)
        assert list(log.uncommitted_markers.entries) == [each for each in ENDED if each[0] < offset]
        open_at = log.producer_state.first_open_transaction_offset
        held_back = log.uncommitted_markers.hold_back(0)
        assert min(each for each in (open_at, held_back, offset) if each is not None) == 0

    def test_a_log_that_starts_over_elsewhere_has_none(self, disk: SimDisk) -> None:
        log = written(disk)
        log.truncate_fully_and_start_at(100)
        assert not log.uncommitted_markers.entries

    def test_a_log_without_markers_there_is_opened_without_its_producers(
        self, disk: SimDisk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log = written(disk)
        append(log, batch())
        log.close()
        monkeypatch.setattr(producer_replay, "replay", None)
        assert not open_log(disk, CONFIG, clean=True, high_watermark=13).uncommitted_markers.entries


@pytest.mark.parametrize("clean", [True, False])
def test_everything_is_known_again_after_a_stop(disk: SimDisk, clean: bool) -> None:
    log = written(disk)
    append(log, transactional(2, 2))
    log.close()
    files = index_files(disk)
    assert sum(map(len, files.values())) == 34 * len(ABORTED)
    for recovery_point in (0, 5, 14):
        again = open_log(disk, CONFIG, clean=clean, recovery_point=recovery_point)
        assert all_aborted(again) == ABORTED
        assert again.producer_state.first_open_transaction_offset == 13
        again.close()
        assert index_files(disk) == files


@pytest.mark.parametrize("interval_bytes", [100, 1 << 20])
def test_a_clean_stop_has_the_index_on_disk_also_of_a_segment_without_any_other(
    disk: SimDisk, interval_bytes: int
) -> None:
    log = open_log(disk, LogConfig(index_interval_bytes=interval_bytes))
    append(log, transactional(1, 0))
    append(log, transactional(1, 1))
    append(log, marker(1, aborts=True))
    log.close()
    for seed in range(10):
        again = open_log(disk.crash(SimRandom(seed)), clean=True, recovery_point=3)
        assert all_aborted(again) == [AbortedTransaction(1, 0, 2, 3)]


def test_a_kill_before_anything_is_saved_loses_no_entry(disk: SimDisk) -> None:
    written(disk)
    assert all_aborted(open_log(disk.kill(), CONFIG)) == ABORTED


def test_truncation_takes_back_what_was_aborted_behind_it(disk: SimDisk) -> None:
    for offset in range(13):
        folder = f"data/orders-{offset}"
        log = open_log(disk, CONFIG, folder=folder)
        whole = written(disk)
        replicate_all(whole, log)
        log.truncate_to(offset)
        assert all_aborted(log) == [each for each in ABORTED if each.last_offset < offset]
        starts = {1: 0, 2: 1} if offset <= 5 else {2: 1} if offset <= 7 else {}
        if offset > 9:
            starts[1] = 9
        if 8 < offset <= 10:
            starts[3] = 8
        still_open = [start for start in starts.values() if start < offset]
        assert log.producer_state.first_open_transaction_offset == min(still_open, default=None)
        log.close()
        again = open_log(disk, CONFIG, folder=folder, clean=True)
        assert all_aborted(again) == [each for each in ABORTED if each.last_offset < offset]
        disk.remove_tree(FOLDER)
        disk.make_dirs(FOLDER)


def replicate_all(source: Log, target: Log) -> None:
    offset = source.start_offset
    while (part := read(source, offset)) is not None:
        offset = replicate(target, bytearray(part.read())).last_offset + 1


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


def test_an_index_goes_with_its_segment(disk: SimDisk) -> None:
    log = written(disk)
    log.roll(0)
    log.delete_records_before(13)
    assert index_files(disk) == {}
    log.close()
    assert open_log(disk, CONFIG, clean=True, log_start_offset=13).end_offset == 13


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
