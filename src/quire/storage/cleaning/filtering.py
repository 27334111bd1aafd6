"""The second half of a cleaning run: copies the retained records of adjacent segments into one cleaned segment."""

from collections.abc import Iterator, Sequence

from quire.protocol.records.batch import read_header
from quire.seams import Disk
from quire.storage.cleaning import stops
from quire.storage.cleaning.cleaned_segment import CleanedSegment
from quire.storage.cleaning.cleaning_run import CleaningRun
from quire.storage.cleaning.filter_native import filter_batches
from quire.storage.cleaning.key_table_native import KeyTable
from quire.storage.cleaning.special_batches import filter_batch
from quire.storage.cleaning.transactions import CleanedTransactions
from quire.storage.cleaning.walk import Walk
from quire.storage.indexes.transaction_index import AbortedTransaction
from quire.storage.segment import Segment

_RECORD_GROWTH = 16
"""How many bytes a record may grow by when its timestamp delta refers to another base timestamp."""


class Filtering:
    __slots__ = ("_cleaned", "_latest_offset", "_out", "_out_size", "_run", "_table", "_transactions", "_walk")

    def __init__(
        self, disk: Disk, run: CleaningRun, aborted: Sequence[AbortedTransaction], table: KeyTable, latest_offset: int
    ) -> None:
        self._run = run
        self._table = table
        self._latest_offset = latest_offset
        self._walk = Walk(disk, run.limits.buffer_bytes)
        self._transactions = CleanedTransactions(aborted)
        self._out = memoryview(bytearray(2 * run.limits.buffer_bytes))
        self._out_size = 0
        self._cleaned: CleanedSegment | None = None

    def run(self, segments: Sequence[Segment], cleaned: CleanedSegment) -> Iterator[int]:
        """Yields the number of bytes read and written, for each buffer. The next call continues with later segments."""
        self._cleaned = cleaned
        for segment in segments:
            for size_bytes in self._walk.through(segment.path, segment.size, self._take):
                yield size_bytes + self._out_size
                self._write()
        cleaned.add_aborted(self._transactions.still_aborted)
        self._transactions.still_aborted = []

    def _take(self, data: memoryview, filled: int) -> int:
        run = self._run
        position = 0
        while True:
            status, position, self._out_size, _ = filter_batches(
                self._table,
                data,
                position,
                filled,
                self._latest_offset,
                run.now_ms,
                run.new_horizon_ms,
                run.stay_if_empty,
                self._out,
                self._out_size,
            )
            if status == stops.END:
                return position
            if status == stops.DAMAGED:
                raise self._walk.damage(position, "its checksum does not match, or its records are broken")
            if status == stops.FULL:
                header = read_header(data, position)
                self._make_room(header.size + header.record_count * _RECORD_GROWTH)
            else:
                header = self._walk.checked_header(position)
                kept = filter_batch(data, header, self._table, self._latest_offset, run, self._transactions)
                if len(kept) > len(self._out) - self._out_size:
                    self._make_room(len(kept))
                self._out[self._out_size : self._out_size + len(kept)] = kept
                self._out_size += len(kept)
                position = header.end

    def _make_room(self, size: int) -> None:
        self._write()
        if size > len(self._out):
            self._out = memoryview(bytearray(size))

    def _write(self) -> None:
        if self._out_size:
            assert self._cleaned is not None
            self._cleaned.append(self._out[: self._out_size])
            self._out_size = 0
