"""A disk that releases a `Reserve` when there is no room. The metadata log is written through it."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from quire.seams import Buffer, Disk, File
from quire.storage.directory.reserve import Reserve
from quire.storage.errors import is_full

T = TypeVar("T")


class ReservingDisk:
    """Implements `quire.seams.Disk` over another disk. A call without room releases the reserve and is repeated."""

    __slots__ = ("_disk", "_reserve")

    def __init__(self, disk: Disk, reserve: Reserve) -> None:
        self._disk = disk
        self._reserve = reserve

    def with_reserve(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except OSError as error:
            if not is_full(error) or not self._reserve.release():
                raise
        return call()

    # --- Calls that may need room

    def open(self, path: str, *, create: bool = False) -> File:
        return ReservingFile(self, self.with_reserve(lambda: self._disk.open(path, create=create)))

    def make_dirs(self, path: str) -> None:
        self.with_reserve(lambda: self._disk.make_dirs(path))

    def rename(self, source: str, target: str) -> None:
        self.with_reserve(lambda: self._disk.rename(source, target))

    def remove(self, path: str) -> None:
        self.with_reserve(lambda: self._disk.remove(path))

    def remove_tree(self, path: str) -> None:
        self.with_reserve(lambda: self._disk.remove_tree(path))

    def lock(self, path: str) -> File | None:
        return self.with_reserve(lambda: self._disk.lock(path))

    # --- Calls that do not

    def exists(self, path: str) -> bool:
        return self._disk.exists(path)

    def is_dir(self, path: str) -> bool:
        return self._disk.is_dir(path)

    def list_dir(self, path: str) -> list[str]:
        return self._disk.list_dir(path)

    def sync_dir(self, path: str) -> None:
        self._disk.sync_dir(path)

    def read_file(self, path: str) -> bytes:
        return self._disk.read_file(path)

    def file_size(self, path: str) -> int:
        return self._disk.file_size(path)

    def modified_ms(self, path: str) -> int:
        return self._disk.modified_ms(path)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._disk.set_modified_ms(path, modified_ms)

    def free_bytes(self, path: str) -> int:
        return self._disk.free_bytes(path)

    def total_bytes(self, path: str) -> int:
        return self._disk.total_bytes(path)

    def is_same_disk(self, path: str, other: str) -> bool:
        return self._disk.is_same_disk(path, other)

    def cache_id(self, path: str) -> str | None:
        return self._disk.cache_id(path)


class ReservingFile:
    """Implements `quire.seams.File` over a file of the other disk."""

    __slots__ = ("_disk", "_file")

    def __init__(self, disk: ReservingDisk, file: File) -> None:
        self._disk = disk
        self._file = file

    @property
    def path(self) -> str:
        return self._file.path

    def size(self) -> int:
        return self._file.size()

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> int:
        return self._disk.with_reserve(lambda: self._file.pwritev(buffers, position))

    def pread(self, size: int, position: int) -> bytes:
        return self._file.pread(size, position)

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        return self._file.pread_into(buffer, position)

    def cached(self, size: int, position: int) -> bool:
        return self._file.cached(size, position)

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def trim(self) -> None:
        self._file.trim()

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        self._file.close()
