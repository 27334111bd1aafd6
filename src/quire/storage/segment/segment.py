"""One segment of a log: batches from its base offset on, their offset and time index, and that of aborted transactions.

Only the last segment of a log is appended to. An append is one write to the `.log`; index entries stay in memory until
`save_indexes` writes them when the segment is rolled or closed.
"""

from collections.abc import Sequence

from quire.protocol.records.batch import BatchHeader
from quire.seams import Buffer, Disk
from quire.storage import file_names
from quire.storage.deleting.deleted_files import mark_deleted
from quire.storage.indexes.index_file import IndexCache
from quire.storage.log_config import LogConfig
from quire.storage.segment.recovering import SegmentRecovering

_SUFFIXES = (file_names.LOG, *file_names.INDEXES)


class Segment(SegmentRecovering):
    __slots__ = ()

    @classmethod
    def create(
        cls, disk: Disk, folder: str, base_offset: int, config: LogConfig, cache: IndexCache, *, now_ms: int
    ) -> "Segment":
        """Creates an empty active segment. If a failed attempt left a file of that name, it is emptied."""
        segment = cls(disk, folder, base_offset, config, cache, now_ms=now_ms)
        segment._file = disk.open(segment.path, create=True)
        if segment._file.size():
            segment._file.truncate(0)
        return segment

    def append(self, records: Buffer, headers: Sequence[BatchHeader]) -> None:
        """Writes whole batches, whose headers have their final offsets, at the end.

        A crash tears at most this write, and recovery cuts it off. A write that fails is cut off here and the cut
        synced, so that no part of it can be taken for batches later.
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

    def truncate_to(self, offset: int) -> int:
        """Removes the batch that contains `offset` and all after it; the segment is active from now on.

        Returns where the segment now ends: at `offset`, or at the base offset of the batch that contained it.
        DamagedBatchError as in `find_cut`.

        A crash before the truncation is durable restores the removed batches. They are then uncommitted batches, as
        they were before, and the next leader makes this replica truncate them again.
        """
        # Changed indexes must not be read from their files again. If a file is corrupt, that is found before the cut.
        self.pin_indexes()
        self._rebuilt_if_corrupt(lambda: (self.offset_index.entries, self.time_index.entries))
        cut = self.find_cut(offset)
        if cut is not None:
            position, end_offset = cut
            self.file.truncate(position)
            self.size = position
            self._forget_unchecked_from(position)
            self.offset_index.truncate_to(offset)
            self.time_index.truncate_to(offset)
            self.transaction_index.truncate_to(offset)
            self._indexes_saved = False
            self.indexes_full = False
            offset = end_offset
        if self.size == 0:
            self._reset_indexes()
            self.transaction_index.reset()
        else:
            self._rebuilt_if_corrupt(self.load_tail)
        return offset

    def _forget_unchecked_from(self, position: int) -> None:
        self.unchecked_end = min(self.unchecked_end, position)
        if self.checked is not None:
            self.checked.truncate_to(position)

    def retire(self) -> list[str]:
        """Renames the files to `.deleted`, the `.log` first: without it the indexes are ignored.

        Returns the new names. Readers that have the file open can continue to read it.
        """
        self.is_retired = True
        self.offset_index.discard()
        self.time_index.discard()
        self.transaction_index.discard()
        return mark_deleted(self._disk, map(self._path, _SUFFIXES))

    def close(self) -> None:
        if self._file is not None:
            self._file.trim()
            self._file.close()
            self._file = None
