"""The high watermark: the offset before which every in-sync replica has everything.

Consumers do not read past it, and an acks=all write is acknowledged when the high watermark has passed it. On a leader
it never goes back.
"""

from quire.storage import Log, LogPosition
from quire.storage.scanning.batch_scan import DamagedBatchError

BEFORE_ALL_SEGMENTS = -1


def restored_position(log: Log, offset: int) -> LogPosition:
    """The position of a high watermark; before all segments if a damaged batch keeps it from being found."""
    try:
        return log.position_of(offset)
    except DamagedBatchError:
        return LogPosition(log.start_offset, BEFORE_ALL_SEGMENTS, 0)
