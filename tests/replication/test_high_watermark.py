"""The position of a high watermark that was read from a checkpoint, in a log that may be damaged."""

from quire.replication.high_watermark import BEFORE_ALL_SEGMENTS, restored_position
from quire.storage import Log, LogConfig, LogPosition
from simulator.disk import SimDisk
from tests.replication.leader import NOW, Leader, batch

FOLDER = "/data/t-0"
SIZE = len(batch(b"a"))


def disk_with_three_batches() -> SimDisk:
    leader = Leader()
    for value in (b"a", b"b", b"c"):
        leader.append(value)
    leader.log.close()
    return leader.disk


def opened(disk: SimDisk) -> Log:
    return Log.open(disk, FOLDER, LogConfig(), clean=True, now_ms=NOW)


def test_it_is_the_position_of_the_batch_at_the_offset() -> None:
    assert restored_position(opened(disk_with_three_batches()), 2) == LogPosition(2, 0, 2 * SIZE)


def test_a_damaged_batch_before_it_puts_it_before_all_segments() -> None:
    """Readers then get an error or nothing, never records that may not be committed."""
    disk = disk_with_three_batches()
    log = opened(disk)
    file = disk.open(f"{FOLDER}/00000000000000000000.log")
    file.pwritev([b"\xff" * 12], SIZE)
    file.close()
    assert restored_position(log, 2) == LogPosition(0, BEFORE_ALL_SEGMENTS, 0)
