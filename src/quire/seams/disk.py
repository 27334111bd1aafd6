"""Files: positioned writes, reads, fsync, and slices that go to a socket without passing through Python.

A change is durable only after a sync: of a file's bytes by `File.sync`, of a created, renamed or removed name by
`Disk.sync_dir` of its folder. The simulated disk loses exactly what was not synced. Every call may raise `OSError`; the
caller decides which log directory that error belongs to. Calls block; calls that may take long (sync, large reads,
removing trees) belong in a job.
"""

from collections.abc import Sequence
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class ReadableFile(Protocol):
    """An open file that is only read. Positions are explicit, so several readers can share one handle."""

    @property
    def path(self) -> str:
        """The current path: it follows renames of the file and of the folders above it."""
        ...

    def size(self) -> int: ...

    def pread(self, size: int, position: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file."""
        ...

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int: ...

    def close(self) -> None: ...


class File(ReadableFile, Protocol):
    """An open file that readers and its writer use at the same time."""

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> int:
        """Writes all bytes of `buffers` at `position` and returns how many; a short write is continued or raises."""
        ...

    def cached(self, size: int, position: int) -> bool:
        """Whether a read of this range does not have to wait for the disk (always true if that is unknown)."""
        ...

    def truncate(self, size: int) -> None: ...

    def trim(self) -> None:
        """Called after the last append: frees space that was allocated beyond the file's end, and no written byte."""
        ...

    def sync(self) -> None: ...


class FileSlice:
    """A range of a file to be sent to a socket; `file` stays open and unchanged in that range until it is sent."""

    __slots__ = ("file", "position", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        return self.file.pread(self.size, self.position)

    def __repr__(self) -> str:
        return f"FileSlice({self.file.path!r}, {self.position}, {self.size})"


class Disk(Protocol):
    """The file system below one or more data directories. Paths are strings with '/'."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Opens for reading and writing; `create` creates the file if it does not exist."""
        ...

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def list_dir(self, path: str) -> list[str]:
        """The names in the folder, sorted."""
        ...

    def make_dirs(self, path: str) -> None:
        """Creates the folder and its parents; they are durable after `sync_dir` of each parent."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Replaces `target` by `source` atomically. Open handles of `source` stay usable."""
        ...

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def sync_dir(self, path: str) -> None: ...

    def read_file(self, path: str) -> bytes: ...

    def file_size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int:
        """When the file's content last changed, as wall-clock time."""
        ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Gives a rewritten file the age of the file that it was made from."""
        ...

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int: ...

    def is_same_disk(self, path: str, other: str) -> bool:
        """Whether two folders share their free space."""
        ...

    def cache_id(self, path: str) -> str | None:
        """Names the page cache that the folder's files are in; None if that cannot be known.

        As long as it is the same, everything that was written there can still be read, synced or not, unless the disk
        has failed meanwhile. It is another one after a power loss, and if another disk is mounted there.
        """
        ...

    def lock(self, path: str) -> File | None:
        """Takes an exclusive lock on `path`, creating it; None if another process holds it. Closing releases it."""
        ...


def write_atomically(disk: Disk, path: str, content: Buffer) -> None:
    """Replaces a small file so that a crash at any point leaves either the old or the new content, complete.

    The bytes are synced before the rename makes them visible, and the folder after it, so that the new name survives.
    If the folder is renamed meanwhile, the file moves with it: another folder may have the old name by then.
    """
    suffix = ".tmp"
    file = disk.open(path + suffix, create=True)
    try:
        file.truncate(0)
        file.pwritev([content], 0)
        file.sync()
        path = file.path.removesuffix(suffix)
        disk.rename(file.path, path)
    finally:
        file.close()
    disk.sync_dir(path.rpartition("/")[0] or ".")
