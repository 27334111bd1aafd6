"""Finding batches of a segment by offset and by timestamp, and how much of what was found is intact."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain

from quire.protocol.records.batch import BatchHeader
from quire.storage.indexes.index_file import CorruptIndexError
from quire.storage.indexes.time_index import NO_TIMESTAMP
from quire.storage.leader_epochs import LeaderEpochs
from quire.storage.producers.end_marker import EndMarker, read_end_marker
from quire.storage.scanning import batch_scan
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.neighbours import does_not_belong
from quire.storage.scanning.range_check import NotCheckedError, RangeCheck
from quire.storage.segment.index_rebuild import IndexRebuild
from quire.storage.segment.indexing import SegmentIndexing

REBUILT_AT_ONCE_BYTES = 256 << 10
"""The indexes of a segment of this size are rebuilt in some milliseconds, even if its batches are small."""


class SegmentLookup(SegmentIndexing):
    __slots__ = ()

    def find(self, offset: int, *, in_job: bool = False) -> tuple[int, BatchHeader] | None:
        """Position and header of the batch that contains `offset`, or of the first after it; None if there is none.

        Reads about one index interval of the file at most. With `in_job`, here and below, a wrong index of a large
        segment is not rebuilt at once, which would take long: NotCheckedError has the rebuild.
        """
        damaged = None
        try:
            for position, header in self.batches_around(offset, in_job=in_job):
                if damaged is not None and header.base_offset > offset:
                    break
                if header.last_offset >= offset:
                    if self.checked is None or not self.checked.is_damaged(position):
                        return position, header
                    # The damage may be in its offsets. If the next batch begins after `offset`, they are right.
                    damaged = damaged or (position, header)
        except DamagedBatchError as damage:
            self.report(damage)
            raise
        return damaged

    def find_cut(self, offset: int) -> tuple[int, int] | None:
        """Where to cut the file to remove `offset` and all after it, and the offset where it ends then.

        None if there is nothing to remove. No checksum covers the offset of a batch, so those close to the cut are
        compared with their neighbours. DamagedBatchError if one that is to be kept is damaged: then nothing is known
        of where the next ones are. For one that is to be removed it makes no difference.
        """
        end_offset: int | None = None
        try:
            for position, header in self.batches_around(offset):
                if position == 0:
                    end_offset = self.base_offset
                if end_offset is not None and does_not_belong(self.file, position, header, end_offset, self.size):
                    if end_offset + header.last_offset_delta >= offset:
                        return position, end_offset
                    reason = f"offset {header.base_offset} follows {end_offset - 1}"
                    raise DamagedBatchError(self.path, position, reason)
                if header.last_offset >= offset:
                    return position, min(offset, header.base_offset)
                end_offset = header.next_offset
        except DamagedBatchError as damage:
            if end_offset == offset:
                return damage.position, offset
            self.report(damage)
            raise
        return None

    def batches_around(self, offset: int, *, in_job: bool = False) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers of all batches from the one that contains `offset` on, and possibly of some before it.

        An index that contradicts the log is rebuilt before it is used.
        """
        return self._rebuilt_if_corrupt(lambda: self._batches_at(self.offset_index.lookup(offset)), in_job=in_job)

    @property
    def takes_long_to_read(self) -> bool:
        """Whether a job must rebuild its indexes. Those of an active segment are in memory, and never wrong."""
        return self.size > REBUILT_AT_ONCE_BYTES and not self.offset_index.pinned

    def _leave_to_job(self, reason: CorruptIndexError) -> None:
        if self.takes_long_to_read:
            raise NotCheckedError(IndexRebuild(self, reason)) from None

    def _batches_at(self, entry: tuple[int, int] | None) -> Iterator[tuple[int, BatchHeader]]:
        if entry is None:
            return batch_scan.headers(self.file, 0, self.size)
        last_offset, position = entry
        if 0 <= position < self.size:
            batches = batch_scan.headers(self.file, position, self.size)
            with suppress(DamagedBatchError):
                first = next(batches)
                # Its last offset may be lower than the entry's: older versions of Kafka index whole appends.
                if self.base_offset <= first[1].base_offset and first[1].last_offset <= last_offset:
                    return chain((first,), batches)
        raise CorruptIndexError(f"{self.offset_index.path} has a wrong entry for offset {last_offset}")

    def batch_size_at(self, position: int) -> int:
        """The size of the batch that begins at `position`."""
        return int.from_bytes(self.file.pread(4, position + 8), "big") + 12

    def intact_size(
        self, position: int, size: int, offset: int, wanted: int, *, limit: int, epochs: LeaderEpochs
    ) -> int:
        """How many of `size` bytes from `position`, where the batch with `offset` begins, are known to be intact.

        This is at least one batch. DamagedBatchError if that batch is damaged, NotCheckedError if it has to be checked
        first. `limit` is an offset that the segment does not reach.
        """
        if position >= self.unchecked_end:
            return size
        end = self.checked.intact_from(position, offset) if self.checked is not None else position
        if end == position:
            if self.unchecked_end < self.size:
                limit = int.from_bytes(self.file.pread(8, self.unchecked_end), "big")
            indexed = self._rebuilt_if_corrupt(lambda: self.offset_index.last_before_position(position), in_job=True)
            lead_in = indexed if indexed is not None and indexed[1] > 0 else (self.base_offset, 0)
            raise NotCheckedError(
                RangeCheck(self, position, offset, wanted, lead_in=lead_in, limit=limit, epochs=epochs)
            )
        return size if end >= self.unchecked_end else min(size, end - position)

    def marker_at(self, position: int, header: BatchHeader) -> EndMarker | None:
        """The end marker in the control batch at `position`; DamagedBatchError if the batch is not intact."""
        return read_end_marker(batch_scan.read_batch(self.file, position, header), header)

    def offset_bound(self, position: int, *, in_job: bool = False) -> int | None:
        """An offset that is above all batches before `position`, but not far above them; None if only the end is."""
        return self._rebuilt_if_corrupt(lambda: self._indexed_from(position), in_job=in_job)

    def _indexed_from(self, position: int) -> int | None:
        entry = self.offset_index.first_from_position(position)
        if entry is None:
            return None
        self._batches_at(entry)  # Checks the entry: one that is too low would hide aborted transactions.
        return entry[0]

    def last_batch(self) -> tuple[int, BatchHeader, int]:
        """Position, header and expected base offset of the last batch; the segment must not be empty.

        The expected offset is the end of the batch before it, or what the index says.
        """
        indexed = self.offset_index.last()
        expected_offset = end_offset = self.base_offset
        for number, batch in enumerate(self._batches_at(indexed)):
            expected_offset = batch[1].base_offset if number == 0 and indexed is not None else end_offset
            end_offset = batch[1].next_offset
        return *batch, expected_offset

    def newest_ms(self) -> int:
        """The highest timestamp of a record; if no record has one, when the file was last written to.

        As with `in_job`: NotCheckedError may have a rebuild.
        """
        timestamp, _ = self.max_timestamp(in_job=True)
        return timestamp if timestamp != NO_TIMESTAMP else self._disk.modified_ms(self.path)

    def batches_around_timestamp(
        self, timestamp: int, from_offset: int, *, in_job: bool = False
    ) -> Iterator[tuple[int, BatchHeader]]:
        """As `batches_around`, for the first batch at or after `from_offset` whose timestamps reach `timestamp`."""
        _, offset = self._rebuilt_if_corrupt(lambda: self.time_index.lookup(timestamp), in_job=in_job)
        return self.batches_around(max(offset, from_offset), in_job=in_job)
