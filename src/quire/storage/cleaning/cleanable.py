"""Which log to clean next, and how far: from what is known of the logs, without touching one.

    log start ── clean ──▶ first dirty ── cleanable ──▶ first uncleanable ── may not be touched yet ──▶ end

The active segment is never cleaned, nor what is not committed, not decided (an open transaction), not on disk, or
younger than `min.compaction.lag.ms`. What is not on disk matters because it may be lost: were an older record of its
key removed for it, both would be gone.

The dirtiest log comes first: the one of which the largest part is cleanable. It must be more than
`min.cleanable.dirty.ratio` of it, unless something has waited for longer than `max.compaction.lag.ms`.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from quire.storage.log import Log
from quire.storage.log_config import NEVER
from quire.storage.segment import Segment


class Cleanable(NamedTuple):
    first_dirty_offset: int
    first_uncleanable_offset: int
    """The base of a segment: segments are cleaned whole."""
    clean_bytes: int
    cleanable_bytes: int
    overdue: bool
    """Whether something cleanable is older than `max.compaction.lag.ms` allows."""

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, min_dirty_ratio: float) -> bool:
        return self.cleanable_bytes > 0 and (self.overdue or self.ratio > min_dirty_ratio)


T = TypeVar("T")


def dirtiest(candidates: Iterable[tuple[T, Cleanable]]) -> tuple[T, Cleanable] | None:
    return max(candidates, key=lambda candidate: candidate[1].ratio, default=None)


def cleanable(log: Log, cleaned_offset: int | None, stable_offset: int, now_ms: int) -> Cleanable:
    """What can be cleaned of a log that is clean up to `cleaned_offset` and whose readers see it up to `stable_offset`.

    A `cleaned_offset` that is outside the log is that of another one, or of one that has lost its end.
    """
    segments = log.segments
    first_dirty = log.start_offset
    if cleaned_offset is not None and log.start_offset <= cleaned_offset <= log.end_offset:
        first_dirty = cleaned_offset
    dirty = _from(segments, first_dirty)
    uncleanable = min(stable_offset, log.recovery_point, segments[-1].base_offset)
    if log.config.min_compaction_lag_ms > 0:
        newest_ms = now_ms - log.config.min_compaction_lag_ms
        uncleanable = min([uncleanable, *(each.base_offset for each in dirty if each.newest_ms() > newest_ms)])
    # A segment that is uncleanable in part is so altogether.
    uncleanable = max(_base_before(segments, uncleanable), first_dirty)
    touched = [segment for segment in dirty if segment.base_offset < uncleanable]
    return Cleanable(
        first_dirty,
        uncleanable,
        sum(segment.size for segment in segments if segment.base_offset < first_dirty),
        sum(segment.size for segment in touched),
        _is_overdue(touched, log.config.max_compaction_lag_ms, now_ms),
    )


def active_is_overdue(log: Log, now_ms: int) -> bool:
    """Whether the active segment has to be completed because what is in it must be cleaned by now."""
    return _is_overdue([log.segments[-1]], log.config.max_compaction_lag_ms, now_ms)


def _from(segments: Sequence[Segment], offset: int) -> list[Segment]:
    """The completed segments from the one that `offset` falls into on."""
    following = [*(segment.base_offset for segment in segments[1:])]
    return [segment for segment, end in zip(segments, following, strict=False) if end > offset]


def _base_before(segments: Sequence[Segment], offset: int) -> int:
    """Where the segment begins that `offset` falls into."""
    return max((segment.base_offset for segment in segments if segment.base_offset <= offset), default=offset)


def _is_overdue(segments: Iterable[Segment], max_lag_ms: int, now_ms: int) -> bool:
    if max_lag_ms == NEVER:
        return False
    return any(0 < segment.first_timestamp() < now_ms - max_lag_ms for segment in segments if segment.size)
