"""Damage of every kind to every file of a log: opening never crashes, and only intact batches are served.

Everything before the damage stays, and so do later batches if they were on disk. A log that was stopped cleanly is not
scanned: there, reading finds the damage.
"""

from collections.abc import Iterator

import pytest

from quire.protocol.records.batch import HEADER_BYTES, walk_batches
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.producers.producer_state import ProducerEntry
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.time_lookup.time_search import TimeSearch, TimestampedOffset, search_now
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER, NOW_MS, append, batch, marker, open_log, read

CONFIG = LogConfig(segment_bytes=420, index_interval_bytes=100)
TIMES = range(NOW_MS - 1, NOW_MS + 7)
BESIDE = [".index", ".timeindex", ".txnindex", ".aborted", ".snapshot", "checkpoint"]


def written(disk: SimDisk) -> list[bytes]:
    """Two segments and a half, with transactions, closed; returns the batches."""
    log = open_log(disk, CONFIG)
    for sequence in range(5):
        value = bytes([65 + sequence]) * 40
        append(
            log,
            batch(
                value,
                timestamp=NOW_MS + sequence,
                producer_id=1,
                producer_epoch=0,
                sequence=sequence,
                transactional=True,
            ),
            leader_epoch=sequence // 2,
        )
        append(log, marker(1, aborts=sequence % 2 == 0), leader_epoch=sequence // 2)
    log.close()
    found = []
    for path in logs(disk):
        data = disk.read_file(path)
        found += [data[header.position : header.end] for header in walk_batches(data)]
    assert len(found) == 10 and len(logs(disk)) > 2
    return found


def logs(disk: SimDisk) -> list[str]:
    return [f"{FOLDER}/{name}" for name in disk.list_dir(FOLDER) if name.endswith(".log")]


def files(disk: SimDisk) -> dict[str, bytes]:
    return {name: disk.read_file(f"{FOLDER}/{name}") for name in disk.list_dir(FOLDER)}


def with_files(content: dict[str, bytes]) -> SimDisk:
    disk = SimDisk()
    disk.make_dirs(FOLDER)
    for name, data in content.items():
        disk.open(f"{FOLDER}/{name}", create=True).pwritev([data], 0)
    return disk


def served(log: Log) -> Iterator[bytes]:
    """Every batch that a reader gets if it tries every offset."""
    for offset in range(log.start_offset, log.end_offset):
        try:
            part = read(log, offset)
        except DamagedBatchError:
            continue
        if part is not None:
            data = part.read()
            yield from (data[header.position : header.end] for header in walk_batches(data))


def check(content: dict[str, bytes], right: list[bytes], kept: int, *, all_others: bool = False) -> None:
    """However the log is opened, only written batches are served, and the first `kept` batches always.

    If everything was on disk and that part is scanned, `all_others` after the damaged batch are served too.
    """
    for clean, recovery_point in ((True, 10), (False, 0), (False, 4), (False, 10)):
        log = open_log(with_files(content), CONFIG, clean=clean, recovery_point=recovery_point)
        found = [_comparable(data, clean) for data in dict.fromkeys(served(log))]
        expected = [_comparable(data, clean) for data in right]
        assert [data for data in found if data not in expected] == [], (clean, recovery_point)
        assert [data for data in expected[:kept] if data not in found] == [], (clean, recovery_point)
        if all_others and not clean and recovery_point == len(right):
            assert [data for data in expected[kept + 1 :] if data not in found] == []
        append(log, batch(b"more"), leader_epoch=100)
        log.close()


def _comparable(data: bytes, clean: bool) -> bytes:
    """The whole header, except the epoch if a crash is assumed: then a new leader may have begun with any batch."""
    return data if clean else data[:12] + data[16:]


def aborted_in(log: Log) -> list[tuple[int, int]]:
    return [(each.first_offset, each.last_offset) for each in log.aborted_transactions(0, None)]


def batches_before(content: dict[str, bytes], damaged: str, position: int) -> int:
    count = 0
    for name in sorted(content):
        if name.endswith(".log"):
            for header in walk_batches(content[name]):
                if name == damaged and header.end > position:
                    return count
                count += 1
    return count


def names(suffix: str, disk: SimDisk) -> list[str]:
    return [name for name in disk.list_dir(FOLDER) if name.endswith(suffix)]


@pytest.mark.parametrize("number", range(3))
def test_each_byte_of_a_log_flipped(disk: SimDisk, number: int) -> None:
    right = written(disk)
    content = files(disk)
    name = names(".log", disk)[number]
    for header in walk_batches(content[name]):
        values = header.position + HEADER_BYTES
        for position in (*range(header.position, values), *range(values, header.end, 7)):
            data = bytearray(content[name])
            data[position] ^= 0x04
            kept = batches_before(content, name, position)
            damaged = {**content, name: bytes(data)}
            check(damaged, right, kept, all_others=number == 2)
            log = open_log(with_files(damaged), CONFIG, clean=False, recovery_point=len(right))
            assert aborted_in(log) == [(0, 1), (4, 5), (8, 9)], "records of them are served, here or after a repair"
            log.close()


@pytest.mark.parametrize("suffix", BESIDE)
def test_each_byte_of_what_is_beside_it_flipped(disk: SimDisk, suffix: str) -> None:
    right = written(disk)
    content = files(disk)
    for name in names(suffix, disk):
        for position in range(0, len(content[name]), 3 if suffix == ".snapshot" else 1):
            data = bytearray(content[name])
            data[position] ^= 0x04
            check({**content, name: bytes(data)}, right, len(right))


@pytest.mark.parametrize("suffix", [".log", *BESIDE])
def test_every_file_truncated_or_with_a_zeroed_tail(disk: SimDisk, suffix: str) -> None:
    right = written(disk)
    content = files(disk)
    for name in names(suffix, disk):
        size = len(content[name])
        for cut in range(0, size, 13):
            kept = batches_before(content, name, cut) if suffix == ".log" else len(right)
            check({**content, name: content[name][:cut]}, right, kept)
            check({**content, name: content[name][:cut] + bytes(size - cut)}, right, kept)


@pytest.mark.parametrize("suffix", BESIDE)
def test_a_missing_file_beside_the_log(disk: SimDisk, suffix: str) -> None:
    right = written(disk)
    content = files(disk)
    for missing in names(suffix, disk):
        check({name: data for name, data in content.items() if name != missing}, right, len(right))
    check({name: data for name, data in content.items() if not name.endswith(suffix)}, right, len(right))


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", BESIDE)
def test_missing_or_truncated_files_beside_the_log_are_rebuilt_from_it(disk: SimDisk, suffix: str, clean: bool) -> None:
    written(disk)
    content = files(disk)
    right = known_of(with_files(content), clean)
    for name in names(suffix, disk):
        others = {other: data for other, data in content.items() if other != name}
        assert known_of(with_files(others), clean) == right, f"without {name}"
        # A time index that is cut off after an entry may be correct; only reading the log shows whether it is.
        step = 12 if suffix == ".timeindex" else 1 << 30
        for size in (size for size in range(len(content[name])) if size == 0 or size % step):
            damaged = with_files({**others, name: content[name][:size]})
            assert known_of(damaged, clean) == right, f"with {size} bytes of {name}"


def known_of(disk: SimDisk, clean: bool) -> tuple[object, ...]:
    """The state of a log besides its batches: timestamps, aborted transactions, epochs and producers."""
    log = open_log(disk, CONFIG, clean=clean, recovery_point=10)
    return (
        log.aborted_transactions(0, None),
        log.epochs.entries,
        [producer_of(entry) for entry in log.producer_state],
        [time_found(log, time) for time in TIMES],
        search_now(log.find_max_timestamp),
    )


def producer_of(entry: ProducerEntry) -> tuple[object, ...]:
    """A snapshot keeps only the last timestamp of a producer."""
    batches = [(batch.first_sequence, batch.last_sequence, batch.last_offset) for batch in entry.batches]
    open_from = entry.current_txn_first_offset
    return entry.producer_id, entry.epoch, batches, entry.last_timestamp, entry.coordinator_epoch, open_from


def time_found(log: Log, time: int) -> TimestampedOffset | None:
    def look(searched: TimeSearch | None) -> TimestampedOffset | None:
        return log.find_timestamp(time, searched)

    return search_now(look)


def test_a_missing_log(disk: SimDisk) -> None:
    right = written(disk)
    content = files(disk)
    for number, missing in enumerate(names(".log", disk)):
        kept = batches_before(content, missing, 0) if number else 0
        check({name: data for name, data in content.items() if name != missing}, right, kept)


def test_a_foreign_file(disk: SimDisk) -> None:
    right = written(disk)
    content = files(disk)
    for foreign in ("notes.txt", "00000000000000000003.strange", "3.log", ".hidden", f"{5:020d}.index"):
        check({**content, foreign: b"whatever"}, right, len(right))
