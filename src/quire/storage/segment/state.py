"""The fields of a segment, its file, and what is known of damage in it. The other parts of `Segment` build on this."""

import logging

from quire.seams import Disk, File
from quire.storage import file_names
from quire.storage.indexes.index_file import IndexCache
from quire.storage.indexes.offset_index import OffsetIndex
from quire.storage.indexes.time_index import TimeIndex
from quire.storage.indexes.transaction_index import TransactionIndex
from quire.storage.log_config import LogConfig
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.checked_ranges import CheckedRanges

_log = logging.getLogger("quire.storage")


class SegmentState:
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
        "is_retired",
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
        """Bytes of whole batches. Anything that the file has beyond them is ignored."""
        self.unchecked_end = size
        """Bytes before it were found on disk and may be damaged; see `quire.storage.scanning.range_check`."""
        self.checked: CheckedRanges | None = None
        """Which of these bytes are known to be intact."""
        self.created_ms = now_ms
        self.offset_index = OffsetIndex(disk, self._path(file_names.OFFSET_INDEX), base_offset, cache)
        self.time_index = TimeIndex(disk, self._path(file_names.TIME_INDEX), base_offset, cache)
        self.transaction_index = TransactionIndex(disk, self._path(file_names.TRANSACTION_INDEX), base_offset, cache)
        self.indexes_full = False
        """Whether the offset index or the time index has no room for another entry."""
        self.is_retired = False
        """Whether it is no longer part of its log. Another segment may have its name."""
        self._indexes_saved = True
        self._unindexed_bytes = 0
        self._first_timestamp: int | None = None
        self._max_timestamp: int | None = None
        self._max_timestamp_offset = base_offset
        if size == 0:
            # Index files may exist, but there are no batches that they could describe.
            self._reset_indexes()
            self.transaction_index.reset()

    def _reset_indexes(self) -> None:
        self.offset_index.reset()
        self.time_index.reset()
        self._indexes_saved = False
        self.indexes_full = False
        self._unindexed_bytes = 0
        self._first_timestamp = None
        self._max_timestamp = None
        self._max_timestamp_offset = self.base_offset

    def use_cache(self, cache: IndexCache) -> None:
        for index in (self.offset_index, self.time_index, self.transaction_index):
            index.use_cache(cache)

    def __repr__(self) -> str:
        return f"Segment({self.path!r}, {self.size} bytes)"

    @property
    def path(self) -> str:
        return self._path(file_names.LOG)

    @property
    def file(self) -> File:
        """The `.log`. It is opened when first needed, so that an idle partition has no open file."""
        if self._file is None:
            self._file = self._disk.open(self.path)
        return self._file

    def report(self, damage: DamagedBatchError) -> None:
        """Remembers a damaged batch, and logs it the first time."""
        if self.checked is None:
            self.checked = CheckedRanges()
        if self.checked.damaged(damage):
            _log.error("not serving a damaged batch, nor records that can only be found through it: %s", damage.message)

    def _path(self, suffix: str) -> str:
        return f"{self._folder}/{file_names.offset_file(self.base_offset, suffix)}"
