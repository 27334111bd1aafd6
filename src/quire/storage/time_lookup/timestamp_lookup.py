"""Finding records by timestamp.

Timestamps need not rise with offsets, so "the first record at or after a timestamp" is the first one in offset order.
Segments are skipped by their highest timestamp. Within a segment the search uses the time index, the offset index and
batch headers (`time_search`); only one batch is decoded.

Both functions may raise LongSearchError. The caller then runs that search and calls again with it. NotCheckedError says
that a job has to rebuild a wrong index first (see `quire.storage.segment.index_rebuild`).
"""

from collections.abc import Iterator

from quire.protocol.records.batch import BatchHeader
from quire.storage.indexes.time_index import NO_TIMESTAMP
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.segment import Segment
from quire.storage.segments import Segments
from quire.storage.time_lookup.time_search import AT_ONCE_BYTES, LongSearchError, TimeSearch, TimestampedOffset


def first_at_or_after(
    segments: Segments, timestamp: int, start_offset: int, searched: TimeSearch | None = None
) -> TimestampedOffset | None:
    """The first record from `start_offset` on whose timestamp is `timestamp` or later."""
    searched = _if_still_true(searched, start_offset)
    found = searched.found if searched is not None else None
    for segment in _not_searched(segments, start_offset, searched):
        if found is not None:
            break
        if segment.max_timestamp(in_job=True)[0] >= timestamp:
            batches = segment.batches_around_timestamp(timestamp, start_offset, in_job=True)
            found = _search(segment, batches, start_offset, timestamp)
    return found


def highest(segments: Segments, start_offset: int, searched: TimeSearch | None = None) -> TimestampedOffset | None:
    """The first record with the highest timestamp; None if no record has one."""
    searched = _if_still_true(searched, start_offset)
    best = searched.found if searched is not None else None
    holder, timestamp = None, best.timestamp if best is not None else NO_TIMESTAMP
    for segment in _not_searched(segments, start_offset, searched):
        highest_here, offset = segment.max_timestamp(in_job=True)
        if highest_here <= timestamp:
            continue
        if _may_be_deleted(segment, offset, start_offset):
            # Only the first segment can have some records deleted and others not.
            best = _search(segment, segment.batches_around(start_offset, in_job=True), start_offset, None)
            timestamp = best.timestamp if best is not None else NO_TIMESTAMP
        else:
            holder, timestamp = segment, highest_here
    if holder is None:
        return best
    batches = holder.batches_around_timestamp(timestamp, start_offset, in_job=True)
    return _search(holder, batches, start_offset, timestamp)


def _if_still_true(searched: TimeSearch | None, start_offset: int) -> TimeSearch | None:
    """The search, unless the record that it found has been deleted."""
    deleted = searched is not None and searched.found is not None and searched.found.offset < start_offset
    return None if deleted else searched


def _not_searched(segments: Segments, start_offset: int, searched: TimeSearch | None) -> Iterator[Segment]:
    """The segments after those searched. Records appended to the searched one came after the request."""
    if searched is not None:
        start_offset = max(start_offset, searched.next_offset)
    for segment in segments.from_offset(start_offset):
        if searched is None or segment is not searched.segment:
            yield segment


def _may_be_deleted(segment: Segment, last_offset: int, start_offset: int) -> bool:
    """Whether a batch that ends with `last_offset` may have lost its record with the highest timestamp."""
    if last_offset < start_offset or segment.base_offset >= start_offset:
        return last_offset < start_offset
    first = segment.find(start_offset, in_job=True)
    return first is not None and first[1].base_offset < start_offset and first[1].last_offset == last_offset


def _search(
    segment: Segment, batches: Iterator[tuple[int, BatchHeader]], start_offset: int, timestamp: int | None
) -> TimestampedOffset | None:
    """Searches from the first of `batches` on."""
    try:
        first = next(batches, None)
        if first is None:
            return None
        search = TimeSearch(segment, first[0], start_offset, timestamp)
        if not search.run(AT_ONCE_BYTES):
            raise LongSearchError(search)
        return search.found
    except DamagedBatchError as damage:
        segment.report(damage)
        raise
