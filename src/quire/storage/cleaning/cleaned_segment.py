"""The segment that a cleaning run writes. Its files end in `.cleaned` until it replaces the original segments.

It is not read before that, and a start removes it. Its indexes are like those of any other segment; the transaction
index contains the aborted transactions whose markers are retained.
"""

from collections.abc import Iterable
from contextlib import closing

from quire.seams import Disk, File
from quire.storage.cleaning.bytes_native import let_others
from quire.storage.cleaning.filter_native import index_batches
from quire.storage.cleaning.swap import SUFFIXES
from quire.storage.file_names import CLEANED, LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX, offset_file
from quire.storage.indexes.index_file import IndexCache
from quire.storage.indexes.offset_index import OffsetIndex
from quire.storage.indexes.time_index import NO_TIMESTAMP, TimeIndex
from quire.storage.indexes.transaction_index import AbortedTransaction, TransactionIndex
from quire.storage.log_config import LogConfig

_POSITION_MAX = 0x7FFFFFFF


class CleanedSegment:
    __slots__ = (
        "_disk",
        "_file",
        "_folder",
        "_interval_bytes",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_offset_index",
        "_time_index",
        "_transaction_index",
        "_unindexed_bytes",
        "base_offset",
        "size",
    )

    def __init__(self, disk: Disk, folder: str, base_offset: int, config: LogConfig) -> None:
        self._disk = disk
        self._folder = folder
        self._interval_bytes = config.index_interval_bytes
        self.base_offset = base_offset
        self.size = 0
        self._unindexed_bytes = 0
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = base_offset
        self.remove()
        self._file: File | None = disk.open(self._path(LOG), create=True)
        cache = IndexCache()
        self._offset_index = OffsetIndex(disk, self._path(OFFSET_INDEX), base_offset, cache)
        self._time_index = TimeIndex(disk, self._path(TIME_INDEX), base_offset, cache)
        self._transaction_index = TransactionIndex(disk, self._path(TRANSACTION_INDEX), base_offset, cache)
        for index in (self._offset_index, self._time_index, self._transaction_index):
            index.reset()

    def append(self, batches: memoryview) -> None:
        assert self._file is not None, "a finished segment is not appended to"
        assert self.size + len(batches) <= _POSITION_MAX, "a position in a segment has 31 bits"
        entries, self._unindexed_bytes, self._max_timestamp, self._max_timestamp_offset = index_batches(
            batches,
            len(batches),
            self.size,
            self._interval_bytes,
            self._unindexed_bytes,
            self._max_timestamp,
            self._max_timestamp_offset,
        )
        for last_offset, position, timestamp, timestamp_offset in entries:
            self._offset_index.append(last_offset, position)
            self._time_index.append(timestamp, timestamp_offset)
        self._file.pwritev([batches], self.size)
        let_others()
        self.size += len(batches)

    def add_aborted(self, aborted: Iterable[AbortedTransaction]) -> None:
        for each in aborted:
            self._transaction_index.append(each)

    def finish(self, modified_ms: int) -> None:
        """Blocks until all of it is on disk, except for the names of the files.

        The file gets the modification time of the last original, by which a segment without timestamps expires.
        """
        assert self._file is not None, "a segment is finished once"
        self._file.trim()
        self._disk.set_modified_ms(self._file.path, modified_ms)
        self._file.sync()
        self.close()
        self._time_index.append(self._max_timestamp, self._max_timestamp_offset)
        for index in (self._offset_index, self._time_index, self._transaction_index):
            index.write()
            for path in filter(self._disk.exists, index.paths):
                with closing(self._disk.open(path)) as file:
                    file.sync()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Removes the files of this attempt, or of an earlier one that was interrupted."""
        for suffix in SUFFIXES:
            if self._disk.exists(self._path(suffix)):
                self._disk.remove(self._path(suffix))

    def _path(self, suffix: str) -> str:
        return f"{self._folder}/{offset_file(self.base_offset, suffix)}{CLEANED}"
