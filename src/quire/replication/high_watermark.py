"""The high watermark: the offset before which every in-sync replica has everything.

Consumers do not read past it, and an acks=all write is acknowledged when the high watermark has passed it. On a leader
it never goes back.
"""

from quire.storage import Log, LogPosition

_BEFORE_ALL_SEGMENTS = -1


def before_all_segments(log: Log) -> LogPosition:
    """The position of a high watermark that a damaged batch keeps from being found: nothing is read."""
    return LogPosition(log.start_offset, _BEFORE_ALL_SEGMENTS, 0)
