"""Searching a segment for a timestamp, batch by batch, from the position that its indexes give.

Usually the search ends within one index interval. But the time index only has the highest timestamp up to an offset. If
timestamps fall, or if the record with the highest one was deleted, the search has to read all headers. Also the batch
that it finds may be large. So the event loop searches only a little, and a job does the rest:

    log.find_timestamp(...)             raises LongSearchError(search)
    search.run()                        in a job: searches the rest of the segment, up to its present end
    log.find_timestamp(..., search)     on the event loop: continues after that
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

from quire.protocol.errors import ErrorCode
from quire.protocol.records.batch import HEADER_BYTES, BatchHeader
from quire.protocol.records.compression import MAX_DECOMPRESSED_BYTES
from quire.protocol.records.expansion import TakesLongError
from quire.protocol.records.invalid import InvalidRecords
from quire.protocol.records.reader import find_highest, find_timestamp
from quire.storage.scanning import batch_scan
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.range_check import read_checked
from quire.storage.segment import Segment
from quire.storage.time_lookup.time_scan_native import find_time

AT_ONCE_BYTES = 64 * 1024
"""How much of a segment, and how large a decompressed batch, the event loop searches without a job."""

_FIRST_CHUNK = 8 * 1024
_CHUNK = 256 * 1024

T = TypeVar("T")


class TimestampedOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


class TimeSearch:
    """Finds the first record at or after a timestamp, or the first one with the highest, in the rest of a segment."""

    __slots__ = ("_end", "_file", "_from_offset", "_position", "_timestamp", "found", "next_offset", "segment")

    def __init__(self, segment: Segment, position: int, from_offset: int, timestamp: int | None) -> None:
        """Searches from the batch at `position` on. Records before `from_offset` are ignored.

        Without `timestamp` it searches for the highest one.
        """
        self.segment = segment
        self._file = segment.file
        self._position = position
        self._end = segment.size
        self._from_offset = from_offset
        self._timestamp = timestamp
        self.found: TimestampedOffset | None = None
        self.next_offset = from_offset
        """The log has been searched up to this offset."""

    def __repr__(self) -> str:
        return f"{self._file.path} from position {self._position} on"

    def run(self, most_bytes: int | None = None) -> bool:
        """Blocks; returns whether the search is complete. It is not if it needs more than `most_bytes`.

        DamagedBatchError if a batch is damaged; OSError if the file was closed meanwhile.
        """
        limit = self._end if most_bytes is None else min(self._position + most_bytes, self._end)
        try:
            self._run(limit, MAX_DECOMPRESSED_BYTES if most_bytes is None else most_bytes)
        except TakesLongError:
            return False
        return self._position >= self._end

    def _run(self, limit: int, batch_bytes_max: int) -> None:
        chunk = _FIRST_CHUNK
        buffer = memoryview(b"")
        while self._position < limit:
            chunk = max(min(chunk, limit - self._position), HEADER_BYTES)
            if len(buffer) < chunk:
                buffer = memoryview(bytearray(chunk))
            filled = self._file.pread_into(buffer[: self._end - self._position], self._position)
            if self._search(buffer[:filled], batch_bytes_max):
                self._position = self._end
            if self._position > self._end:
                raise DamagedBatchError(self._file.path, self._end, "a batch reaches further than this")
            chunk = _CHUNK

    def _search(self, chunk: memoryview, batch_bytes_max: int) -> bool:
        """Searches the batches whose headers are in the chunk; returns whether the search is over."""
        highest = self._timestamp is None
        lowest = self._timestamp
        if lowest is None:
            lowest = self.found.timestamp + 1 if self.found is not None else 0
        stop, at, next_offset = find_time(chunk, self._from_offset, lowest, highest)
        self.next_offset = max(self.next_offset, next_offset)
        if at >= 0:
            position, header = self._header_at(self._position + at)
            found = self._first_in(position, header, lowest, batch_bytes_max)
            if found is not None:
                self.found = found
                if not highest:
                    return True
            if not highest or header.base_offset < self._from_offset:
                # The record with that timestamp may be deleted: continue after the batch.
                self._position = position + header.size
                return False
        elif stop == 0:
            self._header_at(self._position)  # Raises: this is not a batch.
        self._position += stop
        return False

    def _header_at(self, position: int) -> tuple[int, BatchHeader]:
        return next(batch_scan.headers(self._file, position, self._end))

    def _first_in(
        self, position: int, header: BatchHeader, lowest: int, batch_bytes_max: int
    ) -> TimestampedOffset | None:
        """The record in the batch, unless it was deleted. TakesLongError if the batch is larger than allowed here."""
        may_take_long = batch_bytes_max >= MAX_DECOMPRESSED_BYTES
        if header.size > batch_bytes_max and not may_take_long:
            raise TakesLongError
        content = batch_scan.read_batch(self._file, position, header)
        try:
            if self._timestamp is None:
                found = find_highest(content, header, self._from_offset, batch_bytes_max)
            else:
                found = find_timestamp(content, header, lowest, self._from_offset, batch_bytes_max)
        except InvalidRecords as error:
            if error.code is ErrorCode.MESSAGE_TOO_LARGE and not may_take_long:
                raise TakesLongError from None
            raise
        if found is None or found[1] < lowest:
            return None
        return TimestampedOffset(found[1], found[0], header.leader_epoch)


class LongSearchError(Exception):
    """The lookup needs a search that is too long for the event loop."""

    def __init__(self, search: TimeSearch) -> None:
        super().__init__(f"{search} has to be searched")
        self.search = search


def search_now(look: Callable[[TimeSearch | None], T]) -> T:
    """Calls `look` until it succeeds, and runs the searches that it needs. Blocks: for tools and tests."""
    searched: TimeSearch | None = None
    while True:
        try:
            return read_checked(partial(look, searched))
        except LongSearchError as error:
            searched = error.search
            searched.run()
