"""The mark of a roll: created only if indexes would be unchecked after a crash, and removed after a flush."""

from quire.storage.log import Log
from quire.storage.recovery.roll_mark import is_mark, marked_offsets
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER, NOW_MS, append_values, finish_flush, open_log, read_all


def marks(disk: SimDisk) -> list[int]:
    return marked_offsets(disk.list_dir(FOLDER))


def roll_at(log: Log, offset: int) -> None:
    assert log.end_offset == offset
    log.roll(NOW_MS)


def test_a_segment_that_a_crash_would_have_scanned_is_rolled_without_a_mark(disk: SimDisk) -> None:
    log = open_log(disk)
    append_values(log, b"a", b"b")
    roll_at(log, 2)
    assert marks(disk) == []


def test_a_segment_that_was_on_disk_to_its_end_is_marked_until_the_next_flush(disk: SimDisk) -> None:
    log = open_log(disk)
    append_values(log, b"a", b"b")
    log.flush()
    roll_at(log, 2)
    assert marks(disk) == [2]
    log.flush()
    assert marks(disk) == []


def test_a_flush_removes_no_mark_that_was_made_while_it_ran(disk: SimDisk) -> None:
    log = open_log(disk)
    append_values(log, b"a", b"b")
    plan = log.start_flush()
    assert plan is not None
    roll_at(log, 2)
    plan.run()
    finish_flush(log, plan)
    assert (log.recovery_point, marks(disk)) == (2, [2])
    log.flush()
    assert marks(disk) == []


def test_a_kill_between_the_roll_and_its_flush_costs_only_new_indexes(disk: SimDisk) -> None:
    log = open_log(disk)
    append_values(log, b"a", b"b")
    log.flush()
    roll_at(log, 2)
    append_values(log, b"c")
    disk = disk.kill()
    again = open_log(disk, recovery_point=2)
    assert read_all(again) == [(0, b"a"), (1, b"b"), (2, b"c")]
    again.close()
    assert not any(map(is_mark, disk.list_dir(FOLDER)))
