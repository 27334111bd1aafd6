"""The indexes of a segment: entries are added in memory, saved when the segment is rolled or closed, and rebuilt.

The indexes contain nothing that is not in the `.log`, so they can be rebuilt from it at any time. A look-up that finds
them contradicting the `.log` rebuilds them.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from quire.protocol.records.batch import LENGTH_END, BatchHeader
from quire.storage.indexes.index_file import CorruptIndexError, IndexCache
from quire.storage.indexes.offset_index import MAX_RELATIVE_OFFSET
from quire.storage.indexes.time_index import NO_TIMESTAMP
from quire.storage.indexes.transaction_index import AbortedTransaction
from quire.storage.scanning import batch_scan
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.damage import next_intact
from quire.storage.scanning.neighbours import does_not_belong
from quire.storage.segment.state import SegmentState

T = TypeVar("T")
S = TypeVar("S", bound="SegmentIndexing")

_log = logging.getLogger("quire.storage")


class SegmentIndexing(SegmentState):
    __slots__ = ()

    def _index(self, position: int, header: BatchHeader) -> int:
        """Updates timestamps with the batch at `position`, and indexes it if `index.interval.bytes` have passed.

        Returns where the batch ends.
        """
        # Compaction leaves empty batches that still have the timestamp of their former records.
        if header.record_count and (self._max_timestamp is None or header.max_timestamp > self._max_timestamp):
            self._max_timestamp = header.max_timestamp
            self._max_timestamp_offset = header.base_offset + header.last_offset_delta
        if position == 0:
            self._first_timestamp = header.max_timestamp
        if self._unindexed_bytes > self._config.index_interval_bytes:
            self.offset_index.append(header.last_offset, position)
            self.time_index.append(*self.max_timestamp())
            self._indexes_saved = False
            self._unindexed_bytes = 0
            self._check_for_full_indexes()
        size = header.length + LENGTH_END
        self._unindexed_bytes += size
        return position + size

    def _check_for_full_indexes(self) -> None:
        limit_bytes = self._config.segment_index_bytes
        self.indexes_full = self.offset_index.is_full(limit_bytes) or self.time_index.is_full(limit_bytes)

    def add_aborted(self, aborted: AbortedTransaction) -> None:
        """Indexes a transaction whose ABORT marker was appended."""
        self.transaction_index.append(aborted)
        self._indexes_saved = False

    def first_timestamp(self) -> int:
        """The highest timestamp of the first batch; -1 if that batch is damaged. The segment must not be empty."""
        if self._first_timestamp is None:
            self._first_timestamp = NO_TIMESTAMP
            with suppress(DamagedBatchError):
                _, header = next(batch_scan.headers(self.file, 0, self.size))
                self._first_timestamp = header.max_timestamp
        return self._first_timestamp

    def max_timestamp(self, *, in_job: bool = False) -> tuple[int, int]:
        """The highest timestamp and the last offset of its batch: in a completed segment, the last time index entry."""
        if self._max_timestamp is None:
            found = self._rebuilt_if_corrupt(self.time_index.last, in_job=in_job)
            self._max_timestamp, self._max_timestamp_offset = found
        return self._max_timestamp, self._max_timestamp_offset

    # --- Saving

    @property
    def index_paths(self) -> list[str]:
        """The files of the indexes that are not empty, once they are saved."""
        paths = [self.offset_index.path, self.time_index.path]
        return paths if self.transaction_index.is_known_empty else [*paths, *self.transaction_index.paths]

    def save_indexes(self) -> bool:
        """Writes the indexes, with the highest timestamp as the last entry; returns whether anything was written."""
        if self.time_index.append(*self.max_timestamp()):
            self._indexes_saved = False
        if self._indexes_saved:
            return False
        self.offset_index.write()
        self.time_index.write()
        self.transaction_index.write()
        self._indexes_saved = True
        return True

    def indexes_are_saved(self) -> None:
        """The index files of an empty segment were found to be empty, too."""
        self._indexes_saved = True

    def pin_indexes(self) -> None:
        self.offset_index.pin()
        self.time_index.pin()
        self.transaction_index.pin()

    def unpin_indexes(self) -> None:
        self.offset_index.unpin()
        self.time_index.unpin()
        self.transaction_index.unpin()

    # --- Rebuilding

    def _rebuilt_if_corrupt(self, look_up: Callable[[], T], *, in_job: bool = False) -> T:
        try:
            return look_up()
        except CorruptIndexError as error:
            if in_job:
                self._leave_to_job(error)
            self.rebuild_indexes(error)
            return look_up()

    def _leave_to_job(self, reason: CorruptIndexError) -> None:
        """Raises NotCheckedError if rebuilding takes long; see `SegmentLookup`."""

    def rebuild_indexes(self, reason: Exception) -> None:
        """Rebuilds the offset and time index from the headers of the batches. `reason` is logged."""
        _log.warning("rebuilding the indexes of %s: %s", self.path, reason)
        active = self.offset_index.pinned
        self.index_all()
        self.save_indexes()
        if not active:
            self.unpin_indexes()

    def index_all(self) -> None:
        """Indexes all batches, in memory."""
        self._reset_indexes()
        position: int | None = 0
        while position is not None:
            position = self._index_from(position)

    def twin(self, kind: type[S], cache: IndexCache) -> S:
        """The same segment with indexes of its own, for a job that reads the same file."""
        twin = kind(
            self._disk, self._folder, self.base_offset, self._config, cache, now_ms=self.created_ms, size=self.size
        )
        twin._file = self.file
        return twin

    def take_indexes(self, rebuilt: "SegmentIndexing", reason: Exception) -> None:
        """Replaces the indexes of a completed segment by those that a job has rebuilt."""
        _log.warning("rebuilt the indexes of %s: %s", self.path, reason)
        self._reset_indexes()
        self.offset_index.entries.extend(rebuilt.offset_index.entries)
        self.time_index.entries.extend(rebuilt.time_index.entries)
        self._unindexed_bytes = rebuilt._unindexed_bytes
        self._first_timestamp = rebuilt._first_timestamp
        self._max_timestamp, self._max_timestamp_offset = rebuilt._max_timestamp, rebuilt._max_timestamp_offset
        self.save_indexes()
        self.unpin_indexes()

    def _index_from(self, position: int) -> int | None:
        """Indexes the batches from `position` on; returns the position after a damaged batch, or None at the end."""
        end_offset = self.base_offset
        try:
            for at, header in batch_scan.headers(self.file, position, self.size):
                too_far = header.last_offset - self.base_offset > MAX_RELATIVE_OFFSET
                if too_far or does_not_belong(self.file, at, header, end_offset, self.size):
                    raise DamagedBatchError(self.path, at, f"offset {header.base_offset} does not belong here")
                self._index(at, header)
                end_offset = header.next_offset
        except DamagedBatchError as damage:
            self.report(damage)
            # The next batch can only be found through the index, so it must be indexed.
            self._unindexed_bytes = self._config.index_interval_bytes + 1
            return next_intact(self.file, damage.position, self.size, end_offset)
        return None
