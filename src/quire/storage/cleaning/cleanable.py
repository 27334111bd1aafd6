"""Which log to clean next, and how far.

    log start ── clean ──▶ first dirty ── cleanable ──▶ first uncleanable ── must not be cleaned yet ──▶ end

Never cleaned are the active segment and records that are not committed, belong to an open transaction, are not on disk,
or are younger than `min.compaction.lag.ms`. A record that is not on disk may be lost. If compaction had removed an
older record of the same key because of it, both would be lost.

The dirtiest log comes first: the one with the largest cleanable part. That part must be more than
`min.cleanable.dirty.ratio` of the log, unless a record in it is older than `max.compaction.lag.ms`.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from quire.storage.log import Log
from quire.storage.log_config import NEVER
from quire.storage.segment import Segment


class Cleanable(NamedTuple):
    first_dirty_offset: int
    first_uncleanable_offset: int
    """The base offset of a segment, because segments are cleaned as a whole."""
    clean_bytes: int
    cleanable_bytes: int
    overdue: bool
    """Whether a cleanable record is older than `max.compaction.lag.ms`."""

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
    """The cleanable part of a log that is clean up to `cleaned_offset`; records up to `stable_offset` are decided.

    A `cleaned_offset` outside the log is ignored: it is from an earlier log of that name, or the log lost its end.
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
    # A segment that is uncleanable in part is uncleanable as a whole.
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
    """Whether the active segment must be rolled because a record in it is older than `max.compaction.lag.ms`."""
    return _is_overdue([log.segments[-1]], log.config.max_compaction_lag_ms, now_ms)


def _from(segments: Sequence[Segment], offset: int) -> list[Segment]:
    """The completed segments from the one that contains `offset` on."""
    following = [*(segment.base_offset for segment in segments[1:])]
    return [segment for segment, end in zip(segments, following, strict=False) if end > offset]


def _base_before(segments: Sequence[Segment], offset: int) -> int:
    """The base offset of the segment that contains `offset`."""
    return max((segment.base_offset for segment in segments if segment.base_offset <= offset), default=offset)


def _is_overdue(segments: Iterable[Segment], max_lag_ms: int, now_ms: int) -> bool:
    if max_lag_ms == NEVER:
        return False
    return any(0 < segment.first_timestamp() < now_ms - max_lag_ms for segment in segments if segment.size)
