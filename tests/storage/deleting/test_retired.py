from quire.storage.deleting.retired import RetiredSegments
from quire.storage.log import Log
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER, NOW_MS, SMALL_SEGMENTS, append_values


def deleted(disk: SimDisk) -> list[str]:
    return [name for name in disk.list_dir(FOLDER) if name.endswith(".deleted") and ".log" in name]


def test_removing_a_segment_leaves_one_of_the_same_name_that_left_the_log_later(disk: SimDisk) -> None:
    """A fetch may still send the later one, for which the delay begins when it leaves."""
    retired: list[RetiredSegments] = []
    log = Log.open(
        disk,
        FOLDER,
        SMALL_SEGMENTS,
        clean=False,
        now_ms=NOW_MS,
        remove_retired=lambda segments, _: retired.append(segments),
    )
    for _ in range(3):
        append_values(log, b"a")
        log.truncate_fully_and_start_at(0)
    assert len(retired) == len(deleted(disk)) == 3
    for left, segments in zip((2, 1, 0), retired, strict=True):
        segments.remove()
        assert len(deleted(disk)) == left
