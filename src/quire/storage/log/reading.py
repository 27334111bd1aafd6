"""Reading: a slice of one segment's file, and lookups by offset, by timestamp and of aborted transactions.

read -> recent positions, or offset index -> a slice of one segment's file
find_timestamp -> time index, offset index, one batch
"""

from quire.protocol.errors import ApiError, ErrorCode
from quire.seams import FileSlice
from quire.storage.indexes.aborted_lookup import aborted_in
from quire.storage.indexes.transaction_index import AbortedTransaction
from quire.storage.log.state import LogState
from quire.storage.positions import LogPosition
from quire.storage.segment import Segment
from quire.storage.time_lookup import timestamp_lookup
from quire.storage.time_lookup.time_search import TimeSearch, TimestampedOffset


class LogReading(LogState):
    __slots__ = ()

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        upper: LogPosition | None = None,
        min_one_batch: bool = True,
        in_job: bool = False,
    ) -> FileSlice | None:
        """Batches from the one that contains `offset` on: at most `max_bytes` of one segment, below `upper`.

        None if there is nothing below `upper` (by default the end of the log), or if the first batch is larger than
        `max_bytes` and `min_one_batch` is false. The slice may end within a batch. NotCheckedError if the bytes have
        to be checked first or, with `in_job`, if a job has to rebuild a wrong index; DamagedBatchError if the bytes
        were checked and the first batch is damaged.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.path} holds offsets {self.start_offset} to {self.end_offset}, not {offset}",
            )
        if upper is None:
            upper = self.end
        if offset >= upper.offset:
            if offset == self.end_offset:
                # A reader that waits for the next batch will read from here.
                self._recent.remember(offset, self._segments.active.size)
            return None
        segments = self._segments
        segment, position = self._locate(offset, in_job=in_job)
        limit = segment.size
        if upper.segment_base <= segment.base_offset:
            # Compaction may have made the segment shorter than it was when `upper` was found.
            limit = min(upper.position, segment.size) if upper.segment_base == segment.base_offset else 0
        size = limit - position
        if size <= 0:
            return None
        if position < segment.unchecked_end:
            end_offset = segments.base_after(segment, self.end_offset)
            size = segment.intact_size(position, size, offset, max_bytes, limit=end_offset, epochs=self.epochs)
        if size > max_bytes:
            first_size = segment.batch_size_at(position)
            if first_size <= max_bytes:
                size = max_bytes
            elif min_one_batch:
                size = min(size, first_size)
            else:
                return None
        elif position + size == limit and upper.segment_base == segment.base_offset == segments.active.base_offset:
            # The same reader's next read begins where this one ends.
            self._recent.remember(upper.offset, limit)
        return FileSlice(segment.file, position, size)

    def position_of(self, offset: int) -> LogPosition:
        """Where the batch that contains `offset`, or the first one after it, begins; the end for the end offset."""
        assert self.start_offset <= offset <= self.end_offset, f"{offset} is not in {self}"
        if offset == self.end_offset:
            return self.end
        segment, position = self._locate(offset)
        return LogPosition(offset, segment.base_offset, position)

    def _locate(self, offset: int, *, in_job: bool = False) -> tuple[Segment, int]:
        """The segment and position of the first batch that ends at or after `offset`, which is below the end."""
        position = self._recent.find(offset)
        if position is not None:
            return self._segments.active, position
        return self._segments.find(offset, in_job=in_job)

    def find_timestamp(self, timestamp: int, searched: TimeSearch | None = None) -> TimestampedOffset | None:
        """The first record whose timestamp is `timestamp` or later, with its leader epoch.

        LongSearchError if a job has to search first (see `quire.storage.time_lookup.time_search`), NotCheckedError if
        one has to rebuild a wrong index.
        """
        return timestamp_lookup.first_at_or_after(self._segments, timestamp, self.start_offset, searched)

    def find_max_timestamp(self, searched: TimeSearch | None = None) -> TimestampedOffset | None:
        """The first record with the highest timestamp; None if no record has one. Errors as above."""
        return timestamp_lookup.highest(self._segments, self.start_offset, searched)

    def aborted_transactions(self, offset: int, part: FileSlice | None = None) -> list[AbortedTransaction]:
        """The aborted transactions that may have records in `part`, which was read from `offset` on.

        Without `part`: in the log from `offset` on. NotCheckedError if a job has to rebuild a wrong index first.
        """
        return aborted_in(self._segments, self._snapshots, offset, part, self.end_offset)
