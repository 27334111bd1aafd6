"""Compaction interrupted anywhere: at every change it makes to the disk, by a kill or a power loss, and by errors.

After the next start, a reader sees the same last value of every key, no superseded value replaces a newer one, and
every record is at its offset.
"""

import errno
from collections.abc import Callable
from contextlib import suppress

import pytest

from quire.protocol.records import Compression
from quire.storage.log import Log
from simulator.disk import Crashed, SimDisk
from simulator.random import SimRandom
from tests.storage.batches import FOLDER, NOW_MS, append, marker, open_log
from tests.storage.cleaning.compaction import COMPACTED, batches_of, compact, entries_of, keyed, latest, limits

CONFIG = COMPACTED._replace(segment_bytes=700, index_interval_bytes=200)

End = Callable[[SimDisk, int], SimDisk]
ENDS: dict[str, End] = {
    "killed": lambda disk, seed: disk.kill(),
    "power lost": lambda disk, seed: disk.crash(SimRandom(seed)),
    "power lost and sectors in any order": lambda disk, seed: disk.crash(SimRandom(seed), reorder=True),
}


def filled(disk: SimDisk) -> Log:
    """A synced log with every kind of batch that compaction handles."""
    log = open_log(disk, CONFIG)
    sequence = 0
    for number in range(14):
        key = b"key %d" % (number % 5)
        append(log, keyed((key, b"%d" % number), (b"other %d" % (number % 3), bytes(50))))
        if number % 4 == 1:
            append(log, keyed((key, None), compression=Compression.LZ4))
        if number % 5 == 2:
            append(log, keyed((key, b"txn"), producer_id=7, sequence=sequence, transactional=True))
            append(log, marker(7, aborts=number == 7))
            sequence += 1
    log.roll(NOW_MS)
    append(log, keyed((b"key 0", b"last")))
    log.flush()
    disk.sync_dir("data")
    disk.sync_dir("")
    return log


def committed(log: Log) -> dict[int, tuple[bytes | None, bytes | None]]:
    """The records that a read_committed reader sees, by offset."""
    aborted = {
        header.base_offset
        for header, _ in batches_of(log)
        for each in log.aborted_transactions(log.start_offset)
        if header.is_transactional
        and header.producer_id == each.producer_id
        and each.first_offset <= header.base_offset < each.last_offset
    }
    return {
        record.offset: (record.key, record.value)
        for header, records in batches_of(log)
        if not header.is_control and header.base_offset not in aborted
        for record in records
    }


def table_of(records: dict[int, tuple[bytes | None, bytes | None]]) -> dict[bytes, bytes]:
    return dict(latest([(offset, key, value) for offset, (key, value) in sorted(records.items())]))


def check(disk: SimDisk, before: dict[int, tuple[bytes | None, bytes | None]], end_offset: int) -> Log:
    log = open_log(disk, CONFIG, recovery_point=end_offset)
    assert log.end_offset == end_offset
    after = committed(log)
    assert after.items() <= before.items()
    assert table_of(after) == table_of(before)
    assert not [name for name in disk.list_dir(FOLDER) if name.endswith((".cleaned", ".swap", ".deleted"))]
    return log


def compact_twice(disk: SimDisk, log: Log) -> None:
    """The second run merges segments that the first has made small, and removes tombstones."""
    compact(disk, log, using=limits(buffer_bytes=512))
    compact(disk, log, now_ms=NOW_MS + 5000, using=limits(buffer_bytes=512))


def changes_of_a_compaction() -> tuple[int, int]:
    disk = SimDisk()
    disk.make_dirs(FOLDER)
    log = filled(disk)
    first = disk.operations
    compact_twice(disk, log)
    return first + 1, disk.operations


FIRST, LAST = changes_of_a_compaction()


def test_there_is_something_to_interrupt(disk: SimDisk) -> None:
    log = filled(disk)
    segments = len(log.segments)
    size = log.size_bytes
    compact_twice(disk, log)
    assert LAST - FIRST > 100
    assert len(log.segments) < segments > 5
    assert log.size_bytes < size / 2
    assert len(entries_of(log)) == 7


@pytest.mark.parametrize("end", list(ENDS))
def test_a_crash_at_any_change_loses_nothing(end: str) -> None:
    for number in range(FIRST, LAST + 1):
        disk = SimDisk(SimRandom(number), crash_at=number)
        disk.make_dirs(FOLDER)
        log = filled(disk)
        before, end_offset = committed(log), log.end_offset
        with pytest.raises(Crashed):
            compact_twice(disk, log)
        found = ENDS[end](disk, number)
        again = check(found, before, end_offset)
        compact_twice(found, again)
        assert table_of(committed(again)) == table_of(before), number


def test_a_crash_while_a_start_finishes_a_swap_loses_nothing() -> None:
    """The start that follows a crash is interrupted as well, at each of its changes."""
    for number in range(FIRST, LAST + 1, 7):
        disk = SimDisk(SimRandom(number), crash_at=number)
        disk.make_dirs(FOLDER)
        log = filled(disk)
        before, end_offset = committed(log), log.end_offset
        with pytest.raises(Crashed):
            compact_twice(disk, log)
        found = disk.kill()
        for later in range(1, 30):
            found.calls.crash_at = found.operations + later
            try:
                check(found, before, end_offset)
            except Crashed:
                found = found.crash(SimRandom(later))
            else:
                break
        check(found.kill(), before, end_offset)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_after_an_error_of_the_disk_the_next_start_finds_everything(code: int) -> None:
    for number in range(FIRST, LAST + 1):
        disk = SimDisk(SimRandom(number))
        disk.make_dirs(FOLDER)
        log = filled(disk)
        before, end_offset = committed(log), log.end_offset
        disk.fail_at(number, code)
        # A file that cannot get another name because the disk is full is removed at once, which is not an error.
        with pytest.raises(OSError) if code == errno.EIO else suppress(OSError):
            compact_twice(disk, log)
        check(disk.kill(), before, end_offset)
