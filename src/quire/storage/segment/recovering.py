"""From files on disk to a segment that is ready for use: quickly after a clean stop, byte by byte after a crash."""

from contextlib import suppress

from quire.storage.indexes.index_file import CorruptIndexError, IndexCache
from quire.storage.indexes.transaction_index import AbortedTransaction, TransactionIndex
from quire.storage.scanning import segment_scan
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.batch_walk_native import BatchWalk
from quire.storage.scanning.segment_scan import RecoveryVisitor
from quire.storage.segment.lookup import SegmentLookup

_MAX_OFFSET = (1 << 63) - 1


class SegmentRecovering(SegmentLookup):
    __slots__ = ()

    def load_tail(self) -> int:
        """Makes a cleanly closed segment the active one, reading only what follows its last index entry.

        Returns the offset after its last batch. DamagedBatchError or CorruptIndexError if it was not closed cleanly.
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

    def refuse_last_batch(self, damage: DamagedBatchError) -> None:
        """Marks the last batch as damaged, so its timestamp no longer counts."""
        self.report(damage)
        self._max_timestamp = None

    def recover(self, walk: BatchWalk, visitor: RecoveryVisitor) -> DamagedBatchError | None:
        """Reads every byte, rebuilds the indexes in memory, and calls `visitor` for everything that concerns the log.

        The segment ends (in memory; `cut_tail` truncates the file) before the first batch that is damaged or that the
        visitor rejects, unless the visitor says that it is to be passed over. Returns that damage, if any.
        """
        self._reset_indexes()
        self.transaction_index.reset()
        damage, position = None, 0
        self.unchecked_end = 0
        while position < self.size:
            try:
                position = segment_scan.scan(self.file, position, self.size, walk, visitor)
            except DamagedBatchError as found:
                following = visitor.skip_damaged(found)
                if following is None:
                    damage, self.size = found, found.position
                    break
                self.report(found)
                position = self.unchecked_end = following
                # The next batch can only be found through the index, so it must be indexed.
                walk.unindexed_bytes = walk.index_interval + 1
        if self.size:
            self._take_over(walk)
        return damage

    def aborted_in_file(self) -> list[AbortedTransaction]:
        """What the file of the transaction index says, whatever is in memory; nothing if it is missing or wrong."""
        index = TransactionIndex(self._disk, self.transaction_index.path, self.base_offset, IndexCache())
        with suppress(CorruptIndexError):
            index.check(_MAX_OFFSET)
            return list(index)
        return []

    def keep_aborted(self, known: list[AbortedTransaction]) -> None:
        """Adds transactions that a scan could not find, and corrects those that it found a part of."""
        aborted = {each.last_offset: each for each in (*self.transaction_index, *known)}
        self.transaction_index.reset()
        for last_offset in sorted(aborted):
            self.add_aborted(aborted[last_offset])

    def _take_over(self, walk: BatchWalk) -> None:
        self.offset_index.entries.extend(walk.offset_entries)
        self.time_index.entries.extend(walk.time_entries)
        self._unindexed_bytes = walk.unindexed_bytes
        self._first_timestamp = walk.first_timestamp
        self._max_timestamp = walk.max_timestamp
        self._max_timestamp_offset = walk.max_timestamp_offset
        self._check_for_full_indexes()

    def cut_tail(self) -> None:
        """Truncates the file after the last whole batch."""
        self.file.truncate(self.size)
