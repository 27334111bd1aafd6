"""The copy of a damaged segment: own batches and fetched ones, all of them checked; crashes at every step."""

import errno
from collections.abc import Callable
from contextlib import suppress

import pytest

from quire.protocol.errors import ApiError
from quire.protocol.records.batch import HEADER_BYTES, patch, walk_batches
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.segment import Segment
from simulator.disk import Crashed, SimDisk
from simulator.random import SimRandom
from tests.storage.batches import FOLDER, append, append_values, batch, marker, open_log, read, read_all, values_of
from tests.storage.cleaning.compaction import COMPACTED, compact, entries_of, keyed
from tests.storage.repair.repairing import Source, repair, sends

CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100)
VALUES = [b"%03d" % number * 20 for number in range(12)]
EPOCH_STARTS = 3, 5
"""Epoch 1 begins in the middle of the first segment."""

End = Callable[[SimDisk, int], SimDisk]
ENDS: dict[str, End] = {
    "killed": lambda disk, seed: disk.kill(),
    "power lost": lambda disk, seed: disk.crash(SimRandom(seed)),
    "power lost and sectors in any order": lambda disk, seed: disk.crash(SimRandom(seed), reorder=True),
}


def filled(disk: SimDisk, config: LogConfig = CONFIG) -> Log:
    """A log with several segments, written by three leaders, all on disk."""
    log = open_log(disk, config)
    for number, value in enumerate(VALUES):
        append_values(log, value, leader_epoch=sum(number >= start for start in EPOCH_STARTS))
    log.flush()
    disk.sync_dir("data")
    disk.sync_dir("")
    return log


def batches(log: Log) -> list[bytes]:
    """The batches of another replica."""
    content = [segment.file.pread(segment.size, 0) for segment in log.segments]
    return [data[header.position : header.end] for data in content for header in walk_batches(data)]


def content(disk: SimDisk, segment: Segment) -> bytes:
    return disk.peek(segment.path)[: segment.size]


def damage(log: Log, offset: int, at: int = HEADER_BYTES + 7) -> Segment:
    """Flips a bit in the file."""
    segment, position = log._segments.find(offset)
    (byte,) = segment.file.pread(1, position + at)
    segment.file.pwritev([bytes([byte ^ 2])], position + at)
    segment.file.sync()
    segment.unchecked_end = segment.size
    return segment


def nothing(offset: int) -> bytes:
    raise AssertionError(f"offset {offset} is not damaged")


RECORD, OFFSET, LENGTH, EPOCH, CRC = HEADER_BYTES + 7, 7, 9, 15, 18


@pytest.mark.parametrize("at", [RECORD, OFFSET, 1, LENGTH, 11, EPOCH, 12, 16, CRC])
@pytest.mark.parametrize("offset", [0, 2, 3, 4])
def test_only_what_is_damaged_is_fetched(disk: SimDisk, offset: int, at: int) -> None:
    log = filled(disk)
    source = batches(log)
    before = content(disk, log.segments[0])
    damaged = damage(log, offset, at)
    assert damaged is log.segments[0]
    (done,) = repair(disk, log, damaged, sends(*source))
    assert done.fetched_bytes == len(source[offset])
    assert content(disk, log.segments[0]) == before
    assert values_of(log) == VALUES


def test_several_damaged_batches_in_a_row_and_elsewhere(disk: SimDisk) -> None:
    log = filled(disk)
    source = batches(log)
    before = content(disk, log.segments[0])
    for offset in (1, 2, 4):
        damaged = damage(log, offset)
    (done,) = repair(disk, log, damaged, sends(*source, portion=1))
    assert done.fetched_bytes == sum(len(source[offset]) for offset in (1, 2, 4))
    assert content(disk, log.segments[0]) == before


def test_a_file_that_lost_its_end_is_completed(disk: SimDisk) -> None:
    log = filled(disk)
    source = batches(log)
    first = log.segments[0]
    before = content(disk, first)
    first.file.truncate(first.size - 100)
    repair(disk, log, first, sends(*source))
    assert content(disk, log.segments[0]) == before


def test_the_copy_is_checked_before_it_is_served(disk: SimDisk) -> None:
    log = filled(disk)
    source = batches(log)
    repair(disk, log, damage(log, 1), sends(*source))
    damage(log, 1)
    with pytest.raises(DamagedBatchError):
        read_all(log)


def test_the_indexes_of_the_copy_find_every_batch(disk: SimDisk) -> None:
    log = filled(disk)
    source = batches(log)
    entries = bytes(log.segments[0].offset_index.entries), bytes(log.segments[0].time_index.entries)
    repair(disk, log, damage(log, 1), sends(*source))
    repaired = log.segments[0]
    assert (bytes(repaired.offset_index.entries), bytes(repaired.time_index.entries)) == entries
    for offset in range(len(VALUES)):
        part = read(log, offset)
        assert part is not None
        assert walk_batches(part.read())[0].base_offset == offset


def altered(data: bytes, offset: int, epoch: int) -> bytes:
    changed = bytearray(data)
    patch(changed, 0, offset, epoch)
    return bytes(changed)


def broken(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize(
    ("what", "sent"),
    [
        ("nothing", lambda source: b""),
        ("a part of it", lambda source: source[1][:-1]),
        ("it damaged", lambda source: broken(source[1])),
        ("another epoch", lambda source: altered(source[1], 1, 7)),
        ("an earlier epoch", lambda source: altered(source[4], 4, 0)),
        ("a later batch", lambda source: source[2]),
        ("one of the next segment", lambda source: source[-1]),
        ("a batch that overlaps", lambda source: altered(bytes(batch(b"a", b"b", b"c")), 0, 0)),
        ("a batch that is too long", lambda source: altered(bytes(batch(*VALUES)), 1, 0)),
        ("an old message set", lambda source: source[1][:16] + b"\1" + source[1][17:]),
    ],
)
def test_what_does_not_fit_is_refused_and_another_replica_can_be_asked(
    disk: SimDisk, what: str, sent: Callable[[list[bytes]], bytes]
) -> None:
    log = filled(disk)
    source = batches(log)
    before = content(disk, log.segments[0])
    damaged = damage(log, 4 if "earlier" in what else 1)
    good = sends(*source)
    asked: list[int] = []

    def first_wrong(offset: int) -> bytes:
        asked.append(offset)
        return sent(source)

    with pytest.raises(ApiError):
        repair(disk, log, damaged, first_wrong)
    assert len(asked) == 1
    assert not [name for name in disk.list_dir(FOLDER) if name.endswith(".cleaned")]
    repair(disk, log, damaged, good)
    assert content(disk, log.segments[0]) == before


def test_a_log_that_starts_within_the_damaged_batch(disk: SimDisk) -> None:
    log = open_log(disk, CONFIG)
    append(log, batch(b"a", b"b", b"c"), batch(b"d"))
    log.roll(0)
    append(log, batch(b"e"))
    log.flush()
    log.delete_records_before(1)
    source = batches(log)
    repair(disk, log, damage(log, 1), sends(*source))
    assert values_of(log) == [b"b", b"c", b"d", b"e"]


def test_aborted_transactions_are_still_known(disk: SimDisk) -> None:
    log = open_log(disk, CONFIG)
    append(log, batch(b"aborted", producer_id=7, producer_epoch=0, sequence=0, transactional=True))
    append(log, marker(7, aborts=True))
    log.roll(0)
    append(log, batch(b"last"))
    log.flush()
    known = log.aborted_transactions(0)
    assert len(known) == 1
    source = batches(log)
    for offset in (0, 1):
        (done,) = repair(disk, log, damage(log, offset), sends(*source))
        assert not done.lacks_aborted
        assert log.aborted_transactions(0) == known
    # A start after a crash skips a damaged marker, and cannot know its result.
    log.segments[0].transaction_index.reset()
    log.segments[0].transaction_index.write()
    log.segments[0].transaction_index.unpin()
    (done,) = repair(disk, log, damage(log, 1), sends(*source))
    assert done.lacks_aborted
    assert log.aborted_transactions(0) == known


# --- Compacted logs


def compacted(disk: SimDisk) -> Log:
    log = open_log(disk, COMPACTED._replace(index_interval_bytes=100))
    for _ in range(3):
        for number in range(6):
            append(log, keyed((b"key %d" % (number % 3), b"%d" % number)))
        log.roll(0)
    append(log, keyed((b"last", b"last")))
    log.flush()
    return log


def test_a_compacted_log_is_copied_from_its_start_so_that_no_deleted_value_reappears(disk: SimDisk) -> None:
    log = compacted(disk)
    full, entries = batches(log), entries_of(log)
    end_offset = compact(disk, log)
    assert len(log.segments) == 2, "compaction has merged the others"
    # This replica may have removed the tombstone with the values before it, while the other has both.
    repair(disk, log, damage(log, log.segments[0].base_offset), sends(*full), cleaned_offset=end_offset)
    assert entries_of(log) == entries


def test_a_log_is_copied_as_far_as_it_was_compacted(disk: SimDisk) -> None:
    log = compacted(disk)
    full = batches(log)
    asked: list[int] = []

    def source(offset: int) -> bytes:
        asked.append(offset)
        return sends(*full, portion=20)(offset)

    bases = [segment.base_offset for segment in log.segments]
    done = repair(disk, log, damage(log, 0), source, cleaned_offset=bases[2])
    assert len(done) == 2
    assert asked == [bases[1], bases[0]], "the damaged one comes last"


def test_what_another_replica_has_compacted_away_is_not_missing(disk: SimDisk) -> None:
    log = compacted(disk)
    full = batches(log)
    # The other replica has nothing of the first segment, and only the last batch of the second.
    there = [each for each in full if walk_batches(each)[0].base_offset >= log.segments[1].base_offset + 5]
    repair(disk, log, damage(log, 8), sends(*there))
    assert [offset for offset, _, _ in entries_of(log)] == [11, 12, 13, 14, 15, 16, 17, 18]
    assert log.segments[0].size == 0


# --- Crashes


def one_repair(disk: SimDisk, log: Log, source: Source) -> None:
    repair(disk, log, log.segments[1], source)


def prepared(disk: SimDisk) -> tuple[Log, Source, bytes, bytes]:
    """A log with a damaged second segment, and the bytes of that segment: intact and damaged."""
    disk.make_dirs(FOLDER)
    log = filled(disk)
    source = sends(*batches(log))
    right = content(disk, log.segments[1])
    damage(log, log.segments[1].base_offset + 1)
    return log, source, right, content(disk, log.segments[1])


def changes_of_a_repair() -> tuple[int, int]:
    disk = SimDisk()
    log, source, _, _ = prepared(disk)
    first = disk.operations
    one_repair(disk, log, source)
    return first + 1, disk.operations


FIRST, LAST = changes_of_a_repair()


def check(disk: SimDisk, right: bytes, wrong: bytes) -> tuple[Log, bool]:
    """The log after a start, and whether its second segment is repaired; if not, reading must find the damage."""
    log = open_log(disk, CONFIG, recovery_point=len(VALUES))
    found = content(disk, log.segments[1])
    assert found in (right, wrong)
    if found == right:
        assert values_of(log) == VALUES
    else:
        with pytest.raises(DamagedBatchError):
            read_all(log)
    assert log.end_offset == len(VALUES)
    assert not [name for name in disk.list_dir(FOLDER) if name.endswith((".cleaned", ".swap", ".deleted"))]
    return log, found == right


@pytest.mark.parametrize("end", list(ENDS))
def test_after_a_crash_at_any_change_there_is_the_damaged_segment_or_the_repaired_one(end: str) -> None:
    outcomes = []
    for number in range(FIRST, LAST + 1):
        disk = SimDisk(SimRandom(number), crash_at=number)
        log, source, right, wrong = prepared(disk)
        with pytest.raises(Crashed):
            one_repair(disk, log, source)
        found = ENDS[end](disk, number)
        again, is_repaired = check(found, right, wrong)
        outcomes.append(is_repaired)
        one_repair(found, again, source)
        assert values_of(again) == VALUES, number
    assert set(outcomes) == {False, True}


def test_a_crash_while_a_start_finishes_a_swap_does_no_harm() -> None:
    for number in range(FIRST, LAST + 1):
        disk = SimDisk(SimRandom(number), crash_at=number)
        log, source, right, wrong = prepared(disk)
        with pytest.raises(Crashed):
            one_repair(disk, log, source)
        found = disk.kill()
        for later in range(1, 30):
            found.calls.crash_at = found.operations + later
            try:
                check(found, right, wrong)
            except Crashed:
                found = found.crash(SimRandom(later))
            else:
                break
        check(found.kill(), right, wrong)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_after_an_error_of_the_disk_the_next_start_finds_one_of_both(code: int) -> None:
    for number in range(FIRST, LAST + 1):
        disk = SimDisk(SimRandom(number))
        log, source, right, wrong = prepared(disk)
        disk.fail_at(number, code)
        # A file that cannot be renamed because the disk is full is removed at once, which is not an error.
        with pytest.raises(OSError) if code == errno.EIO else suppress(OSError):
            one_repair(disk, log, source)
        check(disk.kill(), right, wrong)
