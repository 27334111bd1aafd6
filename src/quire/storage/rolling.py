"""When a segment is rolled: by size, by the room in its indexes, by the range of its relative offsets, or by age.

`Log` calls this before every append.
"""

from quire.storage.indexes.offset_index import MAX_RELATIVE_OFFSET
from quire.storage.log_config import LogConfig
from quire.storage.segment import Segment


def has_room(segment: Segment, size: int, last_offset: int, timestamp: int, now_ms: int, config: LogConfig) -> bool:
    """Whether the segment can take the append; otherwise it must be rolled."""
    if last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        return False
    if segment.size == 0:
        return True
    if segment.size + size > config.segment_bytes or segment.indexes_full:
        return False
    allowed_ms = config.segment_ms
    if config.segment_jitter_ms > 0:
        allowed_ms -= _jitter_ms(segment, config)
    # The age, by the timestamps of records if they have any.
    first = segment.first_timestamp()
    return (timestamp - first if first >= 0 else now_ms - segment.created_ms) <= allowed_ms


def _jitter_ms(segment: Segment, config: LogConfig) -> int:
    """Spreads the rolls of many partitions. Derived from the path, so it needs neither a random number nor memory."""
    seed = sum((at + 1) * byte for at, byte in enumerate(segment.path.encode()))
    return seed * 2654435761 % min(config.segment_jitter_ms, config.segment_ms)
