"""A batch with a damaged offset or leader epoch, which no checksum covers, between intact batches.

For any flipped bit, the batch is not served, and no other batch is lost that was on disk or that no crash could leave
like this.
"""

from collections.abc import Iterator

import pytest

from quire.protocol.records.batch import walk_batches
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.recovery.log_recovery import KnownOfLog
from quire.storage.recovery.recovery_scan import SECTOR
from quire.storage.scanning.batch_scan import DamagedBatchError
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER, NOW_MS, append, batch, open_log, read, read_all, replicate, values_of

PLAIN = LogConfig(segment_bytes=500, index_interval_bytes=200)
COMPACTED = PLAIN._replace(compact=True, delete=False)
COUNT = 12
"""Batches of two records each, four to a segment, the last ones of another leader."""

BITS_OF_THE_OFFSET = [*range(8), 12, 20, 33, 62]
BITS_OF_THE_EPOCH = [0, 1, 2, 7, 16, 30]


def filled(config: LogConfig, *, gaps: bool = False) -> SimDisk:
    disk = SimDisk()
    log = open_log(disk, config)
    for number in range(COUNT):
        epoch = 5 if number < 6 else 9
        if gaps:
            replicate(log, batch(bytes(40), b"x", base_offset=number * 5 + 1, leader_epoch=epoch))
        else:
            append(log, batch(bytes(40), b"x"), leader_epoch=epoch)
    log.close()
    return disk.kill()


def logs(disk: SimDisk) -> list[str]:
    return [f"{FOLDER}/{name}" for name in disk.list_dir(FOLDER) if name.endswith(".log")]


def batch_positions(disk: SimDisk) -> list[tuple[str, int, int]]:
    """File, position and base offset of each batch."""
    return [
        (path, header.position, header.base_offset)
        for path in logs(disk)
        for header in walk_batches(disk.read_file(path))
    ]


def flip(disk: SimDisk, path: str, position: int, field_bytes: int, bit: int) -> int:
    """Flips one bit of a big-endian field, and returns the new value."""
    file = disk.open(path)
    value = int.from_bytes(file.pread(field_bytes, position), "big") ^ 1 << bit
    file.pwritev([value.to_bytes(field_bytes, "big")], position)
    file.close()
    return value


def copy_of(disk: SimDisk) -> SimDisk:
    copied = SimDisk()
    copied.make_dirs(FOLDER)
    for name in disk.list_dir(FOLDER):
        copied.open(f"{FOLDER}/{name}", create=True).pwritev([disk.read_file(f"{FOLDER}/{name}")], 0)
    return copied


def served(log: Log) -> Iterator[tuple[int, int]]:
    """Base offset and epoch of every batch that a reader gets if it tries every offset."""
    for offset in range(log.start_offset, log.end_offset):
        try:
            part = read(log, offset)
        except DamagedBatchError:
            continue
        if part is not None:
            for header in walk_batches(part.read()):
                yield header.base_offset, header.leader_epoch


def check_flips(config: LogConfig, right: SimDisk, recovery_point: int, *, clean: bool, epochs: bool) -> None:
    """Flips every bit of every batch in turn: that batch is not served, and all others are, at each of their
    offsets."""
    all_of_them = batch_positions(right)
    undamaged = list(dict.fromkeys(served(open_log(copy_of(right), config, clean=True, recovery_point=recovery_point))))
    assert len(undamaged) == COUNT
    for number, (path, position, offset) in enumerate(all_of_them):
        for bit in BITS_OF_THE_EPOCH if epochs else BITS_OF_THE_OFFSET:
            disk = copy_of(right)
            wrong = flip(disk, path, position + (12 if epochs else 0), 4 if epochs else 8, bit)
            log = open_log(disk, config, clean=clean, recovery_point=recovery_point)
            found = list(dict.fromkeys(served(log)))
            expected = [each for at, each in enumerate(undamaged) if at != number]
            what = f"batch {number}, bit {bit}: {offset} became {wrong}" if not epochs else f"{number}: epoch {wrong}"
            assert found == expected, what
            assert log.end_offset == recovery_point, what
            assert append(log, batch(b"next"), leader_epoch=1 << 30).base_offset == recovery_point, what
            assert read_all(log, recovery_point) == [(recovery_point, b"next")], what


@pytest.mark.parametrize("config", [PLAIN, COMPACTED], ids=["plain", "compacted"])
@pytest.mark.parametrize("clean", [True, False], ids=["clean stop", "crash"])
def test_a_wrong_offset_costs_nothing_but_its_batch_where_all_was_on_disk(config: LogConfig, clean: bool) -> None:
    check_flips(config, filled(config), COUNT * 2, clean=clean, epochs=False)


@pytest.mark.parametrize("clean", [True, False], ids=["clean stop", "crash"])
def test_a_wrong_epoch_costs_nothing_but_its_batch_where_all_was_on_disk(clean: bool) -> None:
    check_flips(PLAIN, filled(PLAIN), COUNT * 2, clean=clean, epochs=True)


@pytest.mark.parametrize("config", [PLAIN, COMPACTED], ids=["plain", "compacted"])
@pytest.mark.parametrize("recovery_point", [0, 8])
def test_beyond_the_recovery_point_too_a_wrong_offset_loses_nothing_behind_it(
    config: LogConfig, recovery_point: int
) -> None:
    right = filled(config)
    for number, (path, position, offset) in enumerate(batch_positions(right)):
        for bit in BITS_OF_THE_OFFSET:
            disk = copy_of(right)
            wrong = flip(disk, path, position, 8, bit)
            log = open_log(disk, config, recovery_point=recovery_point)
            found = [base for base, _ in dict.fromkeys(served(log))]
            others = [base for base in range(0, COUNT * 2, 2) if base != offset]
            if number < COUNT - 1:
                assert found == others, (number, wrong)
            else:
                assert found[: len(others)] == others, "no later batch confirms the last one"


def test_a_gap_that_was_always_there_is_not_damage() -> None:
    right = filled(COMPACTED, gaps=True)
    for recovery_point in (0, 21, 58):
        log = open_log(copy_of(right), COMPACTED, recovery_point=recovery_point)
        assert [base for base, _ in dict.fromkeys(served(log))] == [number * 5 + 1 for number in range(COUNT)]


def test_among_gaps_a_wrong_offset_is_known_by_the_batch_behind_it() -> None:
    right = filled(COMPACTED, gaps=True)
    for recovery_point in (0, 58):
        for number, (path, position, offset) in enumerate(batch_positions(right)[: COUNT - 1]):
            disk = copy_of(right)
            assert flip(disk, path, position, 8, 10) == offset + 1024
            log = open_log(disk, COMPACTED, recovery_point=recovery_point)
            expected = [each * 5 + 1 for each in range(COUNT) if each != number]
            assert [base for base, _ in dict.fromkeys(served(log))] == expected


@pytest.mark.parametrize("number", range(COUNT))
def test_a_batch_that_does_not_check_out_below_the_recovery_point_costs_nothing_but_itself(number: int) -> None:
    disk = filled(PLAIN)
    path, position, offset = batch_positions(disk)[number]
    flip(disk, path, position + 70, 1, 3)
    log = open_log(disk, PLAIN, recovery_point=COUNT * 2)
    others = [base for base in range(0, COUNT * 2, 2) if base != offset]
    assert [base for base, _ in dict.fromkeys(served(log))] == others
    with pytest.raises(DamagedBatchError):
        read(log, offset)
    assert log.end_offset == COUNT * 2
    log.close()
    again = open_log(disk.kill(), PLAIN, clean=True, recovery_point=COUNT * 2)
    assert [base for base, _ in dict.fromkeys(served(again))] == others


@pytest.mark.parametrize("number", range(COUNT))
@pytest.mark.parametrize("config", [PLAIN, COMPACTED], ids=["plain", "compacted"])
def test_damage_to_a_committed_batch_costs_nothing_but_itself_after_a_kill(config: LogConfig, number: int) -> None:
    disk = filled(config)
    path, position, offset = batch_positions(disk)[number]
    flip(disk, path, position + 70, 1, 3)
    known: KnownOfLog = {"now_ms": NOW_MS, "clean": False, "high_watermark": COUNT * 2, "page_cache_intact": True}
    log = Log.open(disk, FOLDER, config, **known)
    is_last = number == COUNT - 1
    others = [base for base in range(0, COUNT * 2, 2) if base != offset]
    assert [base for base, _ in dict.fromkeys(served(log))] == others
    assert log.end_offset == (offset if is_last else COUNT * 2), (
        "a last batch may be one that was not written completely"
    )
    if not is_last:
        with pytest.raises(DamagedBatchError):
            read(log, offset)


@pytest.mark.parametrize("page_cache_intact", [True, False])
def test_damage_beyond_what_is_known_to_be_committed_ends_the_log(page_cache_intact: bool) -> None:
    disk = filled(PLAIN)
    path, position, offset = batch_positions(disk)[5]
    flip(disk, path, position + 70, 1, 3)
    for high_watermark in [offset, offset + 1] if page_cache_intact else [COUNT * 2]:
        known: KnownOfLog = {
            "now_ms": NOW_MS,
            "clean": False,
            "high_watermark": high_watermark,
            "page_cache_intact": page_cache_intact,
        }
        log = Log.open(copy_of(disk), FOLDER, PLAIN, **known)
        assert log.end_offset == offset


def test_a_segment_that_is_missing_below_the_high_watermark_costs_nothing_else_after_a_kill() -> None:
    disk = filled(PLAIN)
    disk.remove(logs(disk)[1])
    known: KnownOfLog = {"now_ms": NOW_MS, "clean": False, "high_watermark": COUNT * 2, "page_cache_intact": True}
    log = Log.open(disk, FOLDER, PLAIN, **known)
    assert [base for base, _ in dict.fromkeys(served(log))] == [0, 2, 4, 6, 16, 18, 20, 22]


def test_a_garbage_segment_below_the_recovery_point_affects_no_other(caplog: pytest.LogCaptureFixture) -> None:
    disk = filled(PLAIN)
    second = logs(disk)[1]
    file = disk.open(second)
    file.pwritev([b"\x07" * file.size()], 0)
    file.close()
    log = open_log(disk, PLAIN, recovery_point=COUNT * 2)
    assert [base for base, _ in dict.fromkeys(served(log))] == [0, 2, 4, 6, 16, 18, 20, 22]
    assert disk.file_size(second) > 400, "it is left as it was found"
    assert second in caplog.text


def test_remains_of_an_overwritten_log_do_not_bear_witness_against_what_was_written_over_it(disk: SimDisk) -> None:
    log = open_log(disk)
    for _ in range(4):
        append(log, batch(b"a" * 50), leader_epoch=3)
    old = disk.read_file(f"{FOLDER}/{0:020d}.log")
    log.truncate_to(2)
    append(log, batch(b"x" * 50), leader_epoch=4)
    disk.open(f"{FOLDER}/{0:020d}.log").pwritev([old[354:]], 354)
    assert values_of(open_log(disk)) == [b"a" * 50, b"a" * 50, b"x" * 50]


@pytest.mark.parametrize("lost_bytes", [8, 9, 11])
@pytest.mark.parametrize("recovery_point", [0, 1, 2])
def test_a_write_that_was_torn_before_what_a_batchs_checksum_covers_ends_the_log(
    disk: SimDisk, recovery_point: int, lost_bytes: int
) -> None:
    """The sector with its offset was not written, and the next one was: everything but the offset is valid.

    The batch has less than 256 bytes: the first three of its length, behind the offset, are zero anyway.
    """
    log = open_log(disk, PLAIN._replace(segment_bytes=1 << 20))
    first = batch(b"")
    append(log, batch(bytes(SECTOR - lost_bytes - len(first) - 2)))
    for value in (b"torn", b"behind", b"it"):
        append(log, batch(value))
    (path, position, _), *_ = batch_positions(disk)[1:]
    assert position == SECTOR - lost_bytes, "so that so much of the batch is in the first sector"
    disk.open(path).pwritev([bytes(lost_bytes)], position)
    again = open_log(disk.kill(), PLAIN._replace(segment_bytes=1 << 20), recovery_point=recovery_point)
    if recovery_point < 2:
        assert again.end_offset == 1, "what was not on disk may be lost, but not in the middle"
    else:
        assert [base for base, _ in dict.fromkeys(served(again))] == [0, 2, 3], "it was on disk: this is damage"


@pytest.mark.parametrize("only_torn", [False, True])
@pytest.mark.parametrize("recovery_point", [0, 2, 8])
def test_a_failed_write_that_reappears_after_a_power_loss_loses_no_later_segment(
    disk: SimDisk, recovery_point: int, only_torn: bool
) -> None:
    """The disk is full, a part of a batch is written and cut off again, and the log rolls before the cut is on disk."""
    count = 3 * COUNT
    log = open_log(disk, PLAIN)
    for number in range(count):
        append(log, batch(b"%d" % number))
    paths = [segment.path for segment in log.segments]
    assert len(paths) > 3, paths
    torn = batch(b"there was no room for this")
    for path in paths[:-1]:
        disk.open(path).pwritev([torn[:70]], disk.file_size(path))
    known: KnownOfLog = {"now_ms": NOW_MS, "clean": False, "recovery_point": recovery_point, "only_torn": only_torn}
    again = Log.open(disk.kill(), FOLDER, PLAIN, **known)
    assert read_all(again) == [(number, b"%d" % number) for number in range(count)]
    assert append(again, batch(b"next")).base_offset == count
