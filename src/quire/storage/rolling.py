"""When a segment is complete: by size, by the room in its indexes, by the offsets it can name, or by age.

`Log` asks before every append.
"""

from quire.storage.log_config import LogConfig
from quire.storage.offset_index import MAX_RELATIVE_OFFSET
from quire.storage.segment import Segment


def has_room(segment: Segment, size: int, last_offset: int, timestamp: int, now_ms: int, config: LogConfig) -> bool:
    """Whether an append belongs into the segment, or a new one has to be rolled for it."""
    if last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        return False
    if segment.size == 0:
        return True
    if segment.size + size > config.segment_bytes or segment.indexes_full:
        return False
    allowed_ms = config.segment_ms
    if config.segment_jitter_ms > 0:
        allowed_ms -= _jitter_ms(segment, config)
    # How long it has waited: on the records' own clock where they have one.
    first = segment.first_timestamp()
    return (timestamp - first if first >= 0 else now_ms - segment.created_ms) <= allowed_ms


def _jitter_ms(segment: Segment, config: LogConfig) -> int:
    """Spreads the rolls of many partitions; derived from the name, so that it needs no dice and no memory."""
    seed = sum((at + 1) * byte for at, byte in enumerate(segment.path.encode()))
    return seed * 2654435761 % min(config.segment_jitter_ms, config.segment_ms)
