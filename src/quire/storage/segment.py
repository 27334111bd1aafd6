"""One segment of a log: batches from its base offset on, the two indexes into them, and that of aborted transactions.

Only the last segment of a log is appended to. An append is one write to the `.log`; index entries gather in memory and
reach their files in `save_indexes`, when the segment is rolled or closed. Whatever happens to the indexes, they can be
rebuilt from the `.log`, and a look-up that finds them contradicting it does so.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import TypeVar

from quire.protocol.records.batch import LENGTH_END, BatchHeader
from quire.seams import Buffer, Disk, File
from quire.storage import batch_scan, file_names, segment_scan
from quire.storage.batch_scan import DamagedBatchError
from quire.storage.batch_walk_native import BatchWalk
from quire.storage.checked_ranges import CheckedRanges
from quire.storage.damage import next_intact
from quire.storage.deleted_files import mark_deleted
from quire.storage.end_marker import EndMarker, read_end_marker
from quire.storage.index_file import CorruptIndexError, IndexCache
from quire.storage.leader_epochs import LeaderEpochs
from quire.storage.log_config import LogConfig
from quire.storage.neighbours import does_not_belong
from quire.storage.offset_index import MAX_RELATIVE_OFFSET, OffsetIndex
from quire.storage.range_check import NotCheckedError, RangeCheck
from quire.storage.segment_scan import RecoveryVisitor
from quire.storage.time_index import NO_TIMESTAMP, TimeIndex
from quire.storage.transaction_index import AbortedTransaction, TransactionIndex

T = TypeVar("T")

_log = logging.getLogger("quire.storage")

_SUFFIXES = (file_names.LOG, *file_names.INDEXES)


class Segment:
    __slots__ = (
        "_config",
        "_disk",
        "_file",
        "_first_timestamp",
        "_folder",
        "_indexes_saved",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_unindexed_bytes",
        "base_offset",
        "checked",
        "created_ms",
        "indexes_full",
        "offset_index",
        "size",
        "time_index",
        "transaction_index",
        "unchecked_end",
    )

    def __init__(
        self,
        disk: Disk,
        folder: str,
        base_offset: int,
        config: LogConfig,
        cache: IndexCache,
        *,
        now_ms: int,
        size: int = 0,
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._config = config
        self._file: File | None = None
        self.base_offset = base_offset
        self.size = size
        """Bytes of whole batches; what the file may hold beyond them counts for nothing."""
        self.unchecked_end = size
        """Before it are bytes that were found on disk and may be damaged; see `quire.storage.range_check`."""
        self.checked: CheckedRanges | None = None
        """Those of them that are intact after all."""
        self.created_ms = now_ms
        self.offset_index = OffsetIndex(disk, self._path(file_names.OFFSET_INDEX), base_offset, cache)
        self.time_index = TimeIndex(disk, self._path(file_names.TIME_INDEX), base_offset, cache)
        self.transaction_index = TransactionIndex(disk, self._path(file_names.TRANSACTION_INDEX), base_offset, cache)
        self.indexes_full = False
        """Whether there is no room for another entry."""
        self._indexes_saved = True
        self._unindexed_bytes = 0
        self._first_timestamp: int | None = None
        self._max_timestamp: int | None = None
        self._max_timestamp_offset = base_offset
        if size == 0:
            # Whatever index files there may be, there is nothing they could lead to.
            self._reset_indexes()
            self.transaction_index.reset()

    @classmethod
    def create(
        cls, disk: Disk, folder: str, base_offset: int, config: LogConfig, cache: IndexCache, *, now_ms: int
    ) -> "Segment":
        """A new active segment. What a failed attempt may have left under its name is cut to nothing."""
        segment = cls(disk, folder, base_offset, config, cache, now_ms=now_ms)
        segment._file = disk.open(segment.path, create=True)
        if segment._file.size():
            segment._file.truncate(0)
        return segment

    def __repr__(self) -> str:
        return f"Segment({self.path!r}, {self.size} bytes)"

    @property
    def path(self) -> str:
        return self._path(file_names.LOG)

    @property
    def file(self) -> File:
        """The `.log`, opened when first needed: an idle partition has no open file."""
        if self._file is None:
            self._file = self._disk.open(self.path)
        return self._file

    # Appending

    def append(self, records: Buffer, headers: Sequence[BatchHeader]) -> None:
        """Writes whole batches, whose headers carry their final offsets, at the end.

        A crash tears at most this write, and recovery cuts it off. One that fails is cut off here, and for good:
        nothing of it may be left to be taken for batches.
        """
        position = self.size
        file = self._file or self.file
        try:
            file.pwritev((records,), position)
        except OSError:
            file.truncate(position)
            file.sync()
            raise
        for header in headers:
            position = self._index(position, header)
        assert position == self.size + len(records), "the headers are not those of the records"
        self.size = position

    def _index(self, position: int, header: BatchHeader) -> int:
        """Takes a batch at `position` into account: every so many bytes one gets an entry in both indexes.

        Returns where it ends.
        """
        # Compaction leaves empty batches, with the timestamp of what was in them.
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
            self._see_whether_indexes_are_full()
        size = header.length + LENGTH_END
        self._unindexed_bytes += size
        return position + size

    def _see_whether_indexes_are_full(self) -> None:
        limit_bytes = self._config.segment_index_bytes
        self.indexes_full = self.offset_index.is_full(limit_bytes) or self.time_index.is_full(limit_bytes)

    def add_aborted(self, aborted: AbortedTransaction) -> None:
        """The marker that aborts this transaction has been appended."""
        self.transaction_index.append(aborted)
        self._indexes_saved = False

    def first_timestamp(self) -> int:
        """The highest timestamp of the first batch, which there must be; none if that is damaged."""
        if self._first_timestamp is None:
            self._first_timestamp = NO_TIMESTAMP
            with suppress(DamagedBatchError):
                _, header = next(batch_scan.headers(self.file, 0, self.size))
                self._first_timestamp = header.max_timestamp
        return self._first_timestamp

    # Looking up

    def find(self, offset: int) -> tuple[int, BatchHeader] | None:
        """Position and header of the batch that holds `offset`, or of the first after it; None when all end before.

        Reads about one index interval of the file at most.
        """
        damaged = None
        try:
            for position, header in self.batches_around(offset):
                if damaged is not None and header.base_offset > offset:
                    break
                if header.last_offset >= offset:
                    if self.checked is None or not self.checked.is_damaged(position):
                        return position, header
                    # Its offsets may be what is wrong with it; not if the next one leaves this one to it.
                    damaged = damaged or (position, header)
        except DamagedBatchError as damage:
            self.report(damage)
            raise
        return damaged

    def batches_around(self, offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers of all batches from the one that holds `offset` on, and possibly of some before it.

        An index that contradicts the log is rebuilt before it is believed.
        """
        try:
            return self._batches_at(self.offset_index.lookup(offset))
        except CorruptIndexError as error:
            self.rebuild_indexes(error)
            return self._batches_at(self.offset_index.lookup(offset))

    def _batches_at(self, entry: tuple[int, int] | None) -> Iterator[tuple[int, BatchHeader]]:
        if entry is None:
            return batch_scan.headers(self.file, 0, self.size)
        last_offset, position = entry
        if 0 <= position < self.size:
            batches = batch_scan.headers(self.file, position, self.size)
            with suppress(DamagedBatchError):
                first = next(batches)
                # Its last offset may lie before the entry's: older Kafkas index whole appends, not batches.
                if self.base_offset <= first[1].base_offset and first[1].last_offset <= last_offset:
                    return chain((first,), batches)
        raise CorruptIndexError(f"{self.offset_index.path} has a wrong entry for offset {last_offset}")

    def batch_size_at(self, position: int) -> int:
        """The size of the batch that begins at `position`."""
        return int.from_bytes(self.file.pread(4, position + 8), "big") + 12

    def intact_size(
        self, position: int, size: int, offset: int, wanted: int, *, limit: int, epochs: LeaderEpochs
    ) -> int:
        """How many of `size` bytes at `position`, the batch with `offset`, are known to be intact: one batch at least.

        DamagedBatchError if that one is not; NotCheckedError as long as nobody knows. The segment ends before the
        offset `limit`.
        """
        if position >= self.unchecked_end:
            return size
        end = self.checked.intact_from(position, offset) if self.checked is not None else position
        if end == position:
            if self.unchecked_end < self.size:
                limit = int.from_bytes(self.file.pread(8, self.unchecked_end), "big")
            indexed = self._rebuilt_if_corrupt(lambda: self.offset_index.last_before_position(position))
            lead_in = indexed if indexed is not None and indexed[1] > 0 else (self.base_offset, 0)
            raise NotCheckedError(
                RangeCheck(self, position, offset, wanted, lead_in=lead_in, limit=limit, epochs=epochs)
            )
        return size if end >= self.unchecked_end else min(size, end - position)

    def report(self, damage: DamagedBatchError) -> None:
        """Says aloud, once, that something is damaged; it is known from now on."""
        if self.checked is None:
            self.checked = CheckedRanges()
        if self.checked.damaged(damage):
            _log.error("a damaged batch is not served, nor what only it would lead to: %s", damage.message)

    def _forget_unchecked_from(self, position: int) -> None:
        self.unchecked_end = min(self.unchecked_end, position)
        if self.checked is not None:
            self.checked.truncate_to(position)

    def marker_at(self, position: int, header: BatchHeader) -> EndMarker | None:
        """What the control batch of a producer at `position` says; DamagedBatchError when it is not intact."""
        return read_end_marker(batch_scan.read_batch(self.file, position, header), header)

    def offset_bound(self, position: int) -> int | None:
        """An offset that no batch before `position` reaches, and not far above them; None where only the end is."""
        return self._rebuilt_if_corrupt(lambda: self._indexed_from(position))

    def _indexed_from(self, position: int) -> int | None:
        entry = self.offset_index.first_from_position(position)
        if entry is None:
            return None
        self._batches_at(entry)  # an entry that is too low would hide aborted transactions: it has to be true
        return entry[0]

    def max_timestamp(self) -> tuple[int, int]:
        """The highest timestamp and the last offset of its batch; a completed segment's last time index entry."""
        if self._max_timestamp is None:
            self._max_timestamp, self._max_timestamp_offset = self._rebuilt_if_corrupt(self.time_index.last)
        return self._max_timestamp, self._max_timestamp_offset

    def newest_ms(self) -> int:
        """When its youngest record is from; where no record says so, when the file was last written to."""
        timestamp, _ = self.max_timestamp()
        return timestamp if timestamp != NO_TIMESTAMP else self._disk.modified_ms(self.path)

    def batches_around_timestamp(self, timestamp: int, from_offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """As `batches_around`, beginning before the first batch at or after `from_offset` that reaches `timestamp`."""
        _, offset = self._rebuilt_if_corrupt(lambda: self.time_index.lookup(timestamp))
        return self.batches_around(max(offset, from_offset))

    def _rebuilt_if_corrupt(self, look_up: Callable[[], T]) -> T:
        try:
            return look_up()
        except CorruptIndexError as error:
            self.rebuild_indexes(error)
            return look_up()

    # Opening and recovering

    def load_tail(self) -> int:
        """Makes a cleanly closed segment the active one, reading only what follows its last index entry.

        Returns the offset after its last batch. DamagedBatchError or CorruptIndexError when it was not clean after all.
        """
        if self.size == 0:
            return self.base_offset
        self.pin_indexes()
        indexed = self.offset_index.last()
        self._unindexed_bytes = self.size - (indexed[1] if indexed else 0)
        self._max_timestamp, self._max_timestamp_offset = self.time_index.last()
        end_offset = self.base_offset
        for _, header in self._batches_at(indexed):
            if header.record_count and header.max_timestamp > self._max_timestamp:
                self._max_timestamp, self._max_timestamp_offset = header.max_timestamp, header.last_offset
            end_offset = header.next_offset
        return end_offset

    def last_batch(self) -> tuple[int, BatchHeader, int]:
        """Position and header of the last batch, which there must be, and where it should begin: as the index says."""
        indexed = self.offset_index.last()
        expected_offset = end_offset = self.base_offset
        for number, batch in enumerate(self._batches_at(indexed)):
            expected_offset = batch[1].base_offset if number == 0 and indexed is not None else end_offset
            end_offset = batch[1].next_offset
        return *batch, expected_offset

    def refuse_last_batch(self, damage: DamagedBatchError) -> None:
        """It is not what it says to be, so nothing of what it says counts."""
        self.report(damage)
        self._max_timestamp = None

    def recover(self, walk: BatchWalk, visitor: RecoveryVisitor) -> DamagedBatchError | None:
        """Reads every byte, rebuilds the indexes (in memory) and tells `visitor` of all that matters to the log.

        Returns what is wrong with the first batch that is not intact, or why the visitor does not accept it, unless
        that is to be passed over, and ends the segment before it (in memory: `cut_tail` does it in the file).
        """
        self._reset_indexes()
        self.transaction_index.reset()
        damage, position = None, 0
        self.unchecked_end = 0
        while position < self.size:
            try:
                position = segment_scan.scan(self.file, position, self.size, walk, visitor)
            except DamagedBatchError as found:
                behind = visitor.pass_over(found)
                if behind is None:
                    damage, self.size = found, found.position
                    break
                self.report(found)
                position = self.unchecked_end = behind
                # What comes behind it can only be found through the index, so it has to be in there.
                walk.unindexed_bytes = walk.index_interval + 1
        if self.size:
            self._take_over(walk)
        return damage

    def _take_over(self, walk: BatchWalk) -> None:
        self.offset_index.entries.extend(walk.offset_entries)
        self.time_index.entries.extend(walk.time_entries)
        self._unindexed_bytes = walk.unindexed_bytes
        self._first_timestamp = walk.first_timestamp
        self._max_timestamp = walk.max_timestamp
        self._max_timestamp_offset = walk.max_timestamp_offset
        self._see_whether_indexes_are_full()

    def cut_tail(self) -> None:
        """Removes what the file holds beyond the last whole batch."""
        self.file.truncate(self.size)

    def truncate_to(self, offset: int) -> int:
        """Drops the batch that holds `offset` and all after it, and is active from now on.

        Returns where the segment now ends: at `offset`, or at the base of the batch that held it.

        A crash before the truncation is durable brings dropped batches back. Then they are what they were before:
        uncommitted batches that the next leader asks to be dropped again.
        """
        # What is changed must not be read again from the files; what these lack is found out before anything is cut.
        self.pin_indexes()
        self._rebuilt_if_corrupt(lambda: (self.offset_index.entries, self.time_index.entries))
        found = self.find(offset)
        if found is not None:
            position, header = found
            self.file.truncate(position)
            self.size = position
            self._forget_unchecked_from(position)
            self.offset_index.truncate_to(offset)
            self.time_index.truncate_to(offset)
            self.transaction_index.truncate_to(offset)
            self._indexes_saved = False
            self.indexes_full = False
            offset = min(offset, header.base_offset)
        if self.size == 0:
            self._reset_indexes()
            self.transaction_index.reset()
        else:
            self._rebuilt_if_corrupt(self.load_tail)
        return offset

    def rebuild_indexes(self, reason: Exception) -> None:
        """Makes the indexes into the log anew from its headers; what stands in the way is the reason to tell."""
        _log.warning("rebuilding the indexes of %s: %s", self.path, reason)
        active = self.offset_index.pinned
        self._reset_indexes()
        position: int | None = 0
        while position is not None:
            position = self._index_from(position)
        self.save_indexes()
        if not active:
            self.unpin_indexes()

    def _index_from(self, position: int) -> int | None:
        """Takes the batches from `position` on into account; returns where to go on behind a damaged one."""
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
            # What comes behind it can only be found through the index, so it has to be in there.
            self._unindexed_bytes = self._config.index_interval_bytes + 1
            return next_intact(self.file, damage.position, self.size, end_offset)
        return None

    def _reset_indexes(self) -> None:
        self.offset_index.reset()
        self.time_index.reset()
        self._indexes_saved = False
        self.indexes_full = False
        self._unindexed_bytes = 0
        self._first_timestamp = None
        self._max_timestamp = None
        self._max_timestamp_offset = self.base_offset

    # Ending

    @property
    def index_paths(self) -> list[str]:
        """The files in which the indexes are, once they are saved."""
        paths = [self.offset_index.path, self.time_index.path]
        return paths if self.transaction_index.is_known_empty else [*paths, *self.transaction_index.paths]

    def save_indexes(self) -> bool:
        """Writes the indexes, the highest timestamp last; returns whether there was anything to be written."""
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
        """The index files were found to be as empty as the segment."""
        self._indexes_saved = True

    def pin_indexes(self) -> None:
        self.offset_index.pin()
        self.time_index.pin()
        self.transaction_index.pin()

    def unpin_indexes(self) -> None:
        self.offset_index.unpin()
        self.time_index.unpin()
        self.transaction_index.unpin()

    def retire(self) -> list[str]:
        """Renames the files to `.deleted`, the log first: without it the indexes count for nothing.

        Returns the new names. Readers that have the file open go on reading.
        """
        self.offset_index.discard()
        self.time_index.discard()
        self.transaction_index.discard()
        return mark_deleted(self._disk, map(self._path, _SUFFIXES))

    def close(self) -> None:
        if self._file is not None:
            self._file.trim()
            self._file.close()
            self._file = None

    def _path(self, suffix: str) -> str:
        return f"{self._folder}/{file_names.offset_file(self.base_offset, suffix)}"
