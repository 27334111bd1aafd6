"""The high watermark: the offset before which every in-sync replica has everything.

Consumers do not read past it, and an acks=all write is acknowledged when the high watermark has passed it. On a leader
it never goes back.
"""

from collections.abc import Iterable, Mapping

from quire.storage import Log, LogPosition
from quire.storage.scanning.batch_scan import DamagedBatchError

BEFORE_ALL_SEGMENTS = -1


def high_watermark(current: int, leader_end: int, follower_ends: Mapping[int, int], followers: Iterable[int]) -> int:
    """The smallest log end among the leader and the in-sync `followers`, or `current` if that is already further.

    A follower that has not fetched from this leader yet has no known end, and the high watermark stays where it is.
    While the controller has not confirmed a change of the ISR, the caller passes the larger set (KIP-497).
    """
    reached = leader_end
    for follower in followers:
        reached = min(reached, follower_ends.get(follower, current))
    return max(current, reached)


def restored_position(log: Log, offset: int) -> LogPosition:
    """The position of a high watermark; before all segments if a damaged batch keeps it from being found."""
    try:
        return log.position_of(offset)
    except DamagedBatchError:
        return LogPosition(log.start_offset, BEFORE_ALL_SEGMENTS, 0)
