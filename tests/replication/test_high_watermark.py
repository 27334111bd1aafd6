"""The position of a high watermark that was read from a checkpoint, in a log that may be damaged."""

from quire.replication.partition import Partition
from quire.replication.settings import PartitionSettings
from quire.storage import Log, LogConfig, LogPosition
from tests.replication.leader import NOW, Leader, batch

FOLDER = "/data/t-0"
SIZE = len(batch(b"a"))


def reopened(leader: Leader) -> Partition:
    """Three batches, of which two are known to be committed."""
    for value in (b"a", b"b", b"c"):
        leader.append(value)
    leader.log.close()
    log = Log.open(leader.disk, FOLDER, LogConfig(), clean=True, now_ms=NOW)
    return Partition("t", bytes(16), 0, 1, log, PartitionSettings(), leader, high_watermark=2)


def test_it_is_the_position_of_the_batch_at_the_offset() -> None:
    assert reopened(Leader()).high_watermark_position == LogPosition(2, 0, 2 * SIZE)


def test_a_damaged_batch_before_it_puts_it_before_all_segments() -> None:
    """Readers then get an error or nothing, never records that may not be committed."""
    leader = Leader()
    partition = reopened(leader)
    file = leader.disk.open(f"{FOLDER}/00000000000000000000.log")
    file.pwritev([b"\xff" * 12], SIZE)
    file.close()
    assert partition.high_watermark_position.segment_base < 0
    assert len(leader.damages) == 1
