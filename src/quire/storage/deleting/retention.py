"""Which segments of a log have expired: Kafka's rules for `retention.ms` and `retention.bytes`.

Whole segments expire, the oldest first, and only below the high watermark:

- by size, while the remaining log is still `retention.bytes` or more;
- by age, if the newest record of the segment is older than `retention.ms`.

The active segment can expire, too, unless it is empty. If all segments have expired, the caller rolls, and the log
continues, empty, at its end. Nothing here changes a log; `LogDirectory.drop_expired` does.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from quire.storage.log_config import LogConfig

AT_ONCE_MAX = 32
"""How many segments are deleted at once. Each costs a few renames, during which requests wait."""


class Aging(Protocol):
    """The part of a segment's interface that retention needs.

    `newest_ms` may read from the disk, or raise NotCheckedError.
    """

    @property
    def base_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    def newest_ms(self) -> int: ...


class Expired(NamedTuple):
    """How many segments have expired, and where the log starts without them."""

    segment_count: int
    size_bytes: int
    start_offset: int
    reason: str


def find_expired(
    segments: Sequence[Aging],
    config: LogConfig,
    *,
    end_offset: int,
    high_watermark: int,
    now_ms: int,
    at_once_max: int | None = None,
) -> Expired | None:
    """How many of `segments`, which end at `end_offset`, have expired from the first one on; None when none has."""
    if not config.delete:
        return None
    # Without a size limit there is no excess.
    excess_bytes = -1
    if config.retention_bytes >= 0:
        excess_bytes = sum(segment.size for segment in segments) - config.retention_bytes
    size_bytes = 0
    start_offset = -1
    reasons: dict[str, None] = {}
    count = 0
    for segment in segments[: AT_ONCE_MAX if at_once_max is None else at_once_max]:
        is_last = count + 1 == len(segments)
        ends_at = end_offset if is_last else segments[count + 1].base_offset
        if ends_at > high_watermark or (is_last and segment.size == 0):
            break
        if excess_bytes >= segment.size:
            reasons[f"the log is larger than retention.bytes={config.retention_bytes}"] = None
        elif 0 <= config.retention_ms < now_ms - segment.newest_ms():
            reasons[f"older than retention.ms={config.retention_ms}"] = None
        else:
            break
        excess_bytes -= segment.size
        size_bytes += segment.size
        start_offset = ends_at
        count += 1
    return Expired(count, size_bytes, start_offset, " and ".join(reasons)) if count else None
