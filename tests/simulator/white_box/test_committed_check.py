"""The check of committed metadata, on constructed logs."""

from contextlib import closing

from quire.protocol.records import Record, build_batch
from quire.raft.log_store import FOLDER
from simulator.disk import SimDisk
from simulator.life import Life
from simulator.white_box.committed_check import SAME_IMAGE, SAME_LOG, BatchSeen, CommittedCheck
from tests.simulator.expected_violation import expect


def disk_with(*segments: list[tuple[int, bytes]], epoch: int = 1) -> SimDisk:
    """A metadata log of these segments; each batch has one record, at an offset with a value."""
    disk = SimDisk()
    disk.make_dirs(f"/data/{FOLDER}")
    for batches in segments:
        file = disk.open(f"/data/{FOLDER}/{batches[0][0]:020}.log", create=True)
        position = 0
        for offset, value in batches:
            content = bytes(build_batch([Record(0, 0, None, value)], base_offset=offset, leader_epoch=epoch))
            file.pwritev([content], position)
            position += len(content)
    return disk


def test_logs_that_differ_above_a_high_watermark_only_are_fine() -> None:
    check = CommittedCheck()
    check.check(Life("node-1", 1), disk_with([(0, b"a"), (1, b"b")], [(2, b"c")]), "/data", 3)
    check.check(Life("node-2", 1), disk_with([(0, b"a"), (1, b"b"), (2, b"x")]), "/data", 2)
    assert check.compared == 5


def test_another_batch_at_a_committed_offset_is_found() -> None:
    check = CommittedCheck()
    check.check(Life("node-1", 1), disk_with([(0, b"a"), (1, b"b")]), "/data", 2)
    with expect(SAME_LOG):
        check.check(Life("node-2", 1), disk_with([(0, b"a"), (1, b"x")]), "/data", 2)


def test_a_batch_that_changes_in_the_next_life_of_the_same_node_is_found() -> None:
    check = CommittedCheck()
    check.check(Life("node-1", 1), disk_with([(0, b"a")]), "/data", 1)
    with expect(SAME_LOG):
        check.check(Life("node-1", 2), disk_with([(0, b"a")], epoch=2), "/data", 1)


def test_batches_with_other_bounds_are_found() -> None:
    check = CommittedCheck()
    check.has("node-1", BatchSeen(0, 3, 1, 77))
    with expect(SAME_LOG):
        check.has("node-2", BatchSeen(2, 3, 1, 78))


def test_each_batch_of_a_growing_log_is_compared_once() -> None:
    check = CommittedCheck()
    disk = disk_with([(0, b"a"), (1, b"b")])
    for high_watermark in (1, 1, 2, 2):
        check.check(Life("node-1", 1), disk, "/data", high_watermark)
    assert check.compared == 2


def test_a_batch_that_is_written_after_a_look_is_compared_although_nothing_else_has_changed() -> None:
    check, life = CommittedCheck(), Life("node-1", 1)
    disk = disk_with([(0, b"a")])
    check.check(life, disk, "/data", 2)
    with closing(disk.open(f"/data/{FOLDER}/{0:020}.log")) as file:
        batch = bytes(build_batch([Record(0, 0, None, b"b")], base_offset=1, leader_epoch=1))
        file.pwritev([batch], file.size())
    check.check(life, disk, "/data", 2)
    assert check.compared == 2


def test_a_log_whose_oldest_segment_was_deleted_is_compared_from_its_new_start() -> None:
    check = CommittedCheck()
    disk = disk_with([(0, b"a")], [(1, b"b")])
    check.check(Life("node-1", 1), disk, "/data", 1)
    disk.remove(f"/data/{FOLDER}/{0:020}.log")
    check.check(Life("node-1", 1), disk, "/data", 2)
    with expect(SAME_LOG):
        check.has("node-2", BatchSeen(1, 1, 1, 0))


def test_different_images_at_one_offset_are_found() -> None:
    check = CommittedCheck()
    check.has_image("node-1", 8, "aa")
    check.has_image("node-2", 16, "bb")
    with expect(SAME_IMAGE):
        check.has_image("node-2", 8, "bb")
