"""Finding records by time.

Timestamps need not rise with offsets, so "the first record at or after a time" is the first such one in offset order.
Whole segments are skipped by their highest timestamp, the rest of the way goes by time index, offset index and headers,
and only one batch is opened in the end.
"""

from collections.abc import Iterable
from typing import NamedTuple

from quire.protocol.records.batch import BatchHeader
from quire.protocol.records.reader import find_timestamp
from quire.storage.batch_scan import DamagedBatchError, read_batch
from quire.storage.segment import Segment
from quire.storage.time_index import NO_TIMESTAMP


class TimestampedOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(segments: Iterable[Segment], timestamp: int, start_offset: int) -> TimestampedOffset | None:
    """The first record from `start_offset` on whose timestamp is `timestamp` or later."""
    for segment in segments:
        if segment.max_timestamp()[0] < timestamp:
            continue
        try:
            for position, header in segment.batches_around_timestamp(timestamp, start_offset):
                if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
                    found = _first_in_batch(segment, position, header, timestamp, start_offset)
                    if found is not None:
                        return found
        except DamagedBatchError as damage:
            segment.report(damage)
            raise
    return None


def highest(segments: Iterable[Segment], start_offset: int) -> TimestampedOffset | None:
    """The first record with the highest timestamp of all; None when no record has one."""
    timestamp = NO_TIMESTAMP
    holder = None
    for segment in segments:
        highest_here = _highest_of(segment, start_offset)
        if highest_here > timestamp:
            timestamp, holder = highest_here, segment
    if holder is None:
        return None
    return first_at_or_after([holder], timestamp, start_offset)


def _highest_of(segment: Segment, start_offset: int) -> int:
    timestamp, offset = segment.max_timestamp()
    if offset >= start_offset or timestamp == NO_TIMESTAMP:
        return timestamp
    # The record with the highest timestamp was deleted, others of its segment were not.
    live = (header for _, header in segment.batches_around(start_offset) if header.last_offset >= start_offset)
    return max((header.max_timestamp for header in live), default=NO_TIMESTAMP)


def _first_in_batch(
    segment: Segment, position: int, header: BatchHeader, timestamp: int, start_offset: int
) -> TimestampedOffset | None:
    found = find_timestamp(read_batch(segment.file, position, header), header, timestamp, start_offset)
    return TimestampedOffset(found[1], found[0], header.leader_epoch) if found is not None else None
