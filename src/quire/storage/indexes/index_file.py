"""The base of all index files: entries of fixed size, in memory while in use, in a file otherwise.

The index of the active segment is pinned in memory and only written when the segment is closed or rolled, so that an
append needs no system call for it. After a crash it is rebuilt from the log. Indexes of older segments are read when
first needed and kept in an `IndexCache` of limited size.
"""

from collections import OrderedDict
from struct import Struct
from typing import ClassVar

from quire.seams import Disk
from quire.storage.whole_file import write_whole


class CorruptIndexError(Exception):
    """An index file is wrong; the segment's indexes must be rebuilt from its log."""


CACHE_BYTES = 16 << 20
"""How much memory the indexes of inactive segments of a data directory may take."""


class IndexCache:
    """The indexes of inactive segments that are in memory, the least recently used first."""

    def __init__(self, limit_bytes: int | None = None) -> None:
        self._limit_bytes = CACHE_BYTES if limit_bytes is None else limit_bytes
        self._size_bytes = 0
        self._loaded: OrderedDict[IndexFile, int] = OrderedDict()

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    def touch(self, index: "IndexFile") -> None:
        if index in self._loaded:
            self._loaded.move_to_end(index)

    def add(self, index: "IndexFile", size_bytes: int) -> None:
        self.drop(index)
        self._loaded[index] = size_bytes
        self._size_bytes += size_bytes
        while self._size_bytes > self._limit_bytes and len(self._loaded) > 1:
            oldest = next(iter(self._loaded))
            self.drop(oldest)
            oldest.unload()

    def drop(self, index: "IndexFile") -> None:
        self._size_bytes -= self._loaded.pop(index, 0)


class IndexFile:
    """One `.index` or `.timeindex`. Offsets in it are relative to the segment's base offset."""

    __slots__ = ("_cache", "_disk", "_entries", "base_offset", "path", "pinned")

    ENTRY: ClassVar[Struct]

    def __init__(self, disk: Disk, path: str, base_offset: int, cache: IndexCache) -> None:
        self._disk = disk
        self._cache = cache
        self._entries: bytearray | None = None
        self.path = path
        self.base_offset = base_offset
        self.pinned = False

    @property
    def paths(self) -> list[str]:
        """All files of the index."""
        return [self.path]

    @property
    def entries(self) -> bytearray:
        """The raw entries, from memory or from the file; CorruptIndexError if the file cannot be an index."""
        entries = self._entries
        if entries is None:
            entries = self._entries = self._read()
            if not self.pinned:
                self._cache.add(self, len(entries))
        elif not self.pinned:
            self._cache.touch(self)
        return entries

    @property
    def count(self) -> int:
        return len(self.entries) // self.ENTRY.size

    def last_entry(self) -> tuple[int, ...] | None:
        """The fields of the last entry. If the index is not in memory, nothing else is read."""
        if self._entries is None and not self.pinned:
            tail = self._read_tail()
            return self.ENTRY.unpack(tail) if tail else None
        entries = self.entries
        return self.ENTRY.unpack_from(entries, len(entries) - self.ENTRY.size) if entries else None

    def is_full(self, limit_bytes: int) -> bool:
        return len(self.entries) + self.ENTRY.size > limit_bytes

    def pin(self) -> None:
        """Keeps the entries in memory, for the segment that is appended to."""
        self.pinned = True
        self._cache.drop(self)

    def reset(self) -> None:
        """Removes all entries, and keeps the index in memory until `write` has replaced the file."""
        self.pin()
        self._entries = bytearray()

    def write(self) -> None:
        """Writes the entries to the file and truncates it after them.

        A crash in between leaves an index that contradicts its log. Recovery will scan that segment, because the
        recovery point passes a segment only after its index files were synced.
        """
        write_whole(self._disk, self.path, self.entries)

    def unpin(self) -> None:
        """The segment is complete: its index may leave memory. The caller must have called `write`."""
        if self.pinned:
            self.pinned = False
            self._cache.add(self, len(self.entries))

    def use_cache(self, cache: IndexCache) -> None:
        """From now on this cache limits how long the entries stay in memory."""
        self._cache.drop(self)
        self._cache = cache
        self.unload()

    def unload(self) -> None:
        if not self.pinned:
            self._entries = None

    def discard(self) -> None:
        """The segment was deleted."""
        self._cache.drop(self)
        self._entries = None

    def _read(self) -> bytearray:
        try:
            content = bytearray(self._disk.read_file(self.path))
        except FileNotFoundError as missing:
            raise CorruptIndexError(f"{self.path} is missing") from missing
        self._check_size(len(content))
        return content

    def _read_tail(self) -> bytes:
        try:
            file = self._disk.open(self.path)
        except FileNotFoundError as missing:
            raise CorruptIndexError(f"{self.path} is missing") from missing
        try:
            size = file.size()
            self._check_size(size)
            return file.pread(self.ENTRY.size, size - self.ENTRY.size) if size else b""
        finally:
            file.close()

    def _check_size(self, size: int) -> None:
        if size % self.ENTRY.size:
            raise CorruptIndexError(f"{self.path} has {size} bytes, not a multiple of {self.ENTRY.size}")
