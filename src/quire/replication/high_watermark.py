"""The high watermark: the offset before which every in-sync replica has everything.

Nobody reads past it, and an acks=all write is acknowledged when it has been passed. It never goes back on a leader.
"""

from collections.abc import Iterable, Mapping

from quire.storage import Log, LogPosition
from quire.storage.batch_scan import DamagedBatchError

BEFORE_ALL_SEGMENTS = -1


def high_watermark(current: int, leader_end: int, follower_ends: Mapping[int, int], followers: Iterable[int]) -> int:
    """The smallest log end among the leader and the in-sync `followers`, or `current` if that is already further.

    A follower that has not fetched since this leader took over has no known end and holds the mark where it is. The
    caller names the larger set while an ISR change waits for the controller's word (KIP-497).
    """
    reached = leader_end
    for follower in followers:
        reached = min(reached, follower_ends.get(follower, current))
    return max(current, reached)


def restored_position(log: Log, offset: int) -> LogPosition:
    """Where a high watermark stands; before everything where a damaged batch is in the way of finding that out."""
    try:
        return log.position_of(offset)
    except DamagedBatchError:
        return LogPosition(log.start_offset, BEFORE_ALL_SEGMENTS, 0)
