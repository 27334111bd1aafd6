"""Disk space that a node reserves beside its metadata log, so that topics can be deleted when the disk is full.

Deleting a topic needs a record in the metadata log, and so does every start. Therefore the node keeps a file of
`quire.reserve.bytes` beside the metadata log. When that log finds no room, the file is removed and the write repeated.
The freed room is for metadata alone: while the file is missing, logs on the same disk refuse appends of clients, as if
the disk were full. The first append that finds enough room writes the file again, and so does the next start.
"""

import errno
import logging
from contextlib import closing, suppress

from quire.seams import Disk, Random

FILE_NAME = "quire.reserve"

_BLOCK_BYTES = 256 << 10
"""A random block that fills the file. It is longer than what file systems compress at once, so that it takes room."""

_log = logging.getLogger("quire.storage")


class Reserve:
    __slots__ = ("_disk", "_folder", "_path", "_random", "_size_bytes", "is_missing")

    def __init__(self, disk: Disk, random: Random, folder: str, size_bytes: int) -> None:
        """The state of the file as the last process left it; `set_aside` writes it."""
        self._disk = disk
        self._random = random
        self._folder = folder
        self._path = f"{folder}/{FILE_NAME}"
        self._size_bytes = size_bytes
        self.is_missing = size_bytes > 0 and not self._is_whole()
        """Whether the remaining room is for metadata. An attribute, because every append reads it."""

    def _is_whole(self) -> bool:
        return self._disk.exists(self._path) and self._disk.file_size(self._path) >= self._size_bytes

    def set_aside(self) -> bool:
        """Writes the file if it is missing and there is room for twice its size; whether it exists. May block."""
        if self.is_missing and self._disk.free_bytes(self._folder) >= 2 * self._size_bytes:
            try:
                self._write()
                self.is_missing = False
            except OSError as error:
                with suppress(OSError):
                    self._disk.remove(self._path)
                _log.error("cannot reserve room in %s: %s", self._path, error)
        return not self.is_missing

    def _write(self) -> None:
        block = self._random.random_bytes(min(_BLOCK_BYTES, self._size_bytes))
        with closing(self._disk.open(self._path, create=True)) as file:
            for position in range(0, self._size_bytes, len(block)):
                file.pwritev([block[: self._size_bytes - position]], position)
            file.truncate(self._size_bytes)

    def release(self) -> bool:
        """Removes the file; returns whether it existed. May be called in a job."""
        if self.is_missing or not self._size_bytes:
            return False
        self.is_missing = True
        _log.error(
            "the disk of %s is full: the %d reserved bytes are used for metadata, and nothing else is written "
            "until there is room; delete topics or records, or free room in another way",
            self._folder,
            self._size_bytes,
        )
        try:
            self._disk.remove(self._path)
        except FileNotFoundError:
            return False
        return True

    def no_room(self, path: str) -> OSError:
        """The error for an append that is refused because the remaining room is for metadata."""
        return OSError(errno.ENOSPC, "No space left on device except for metadata", path)


class NoReserve(Reserve):
    """For a disk without a metadata log."""

    __slots__ = ()

    def __init__(self) -> None:
        self.is_missing = False

    def set_aside(self) -> bool:
        return True

    def release(self) -> bool:
        return False


NO_RESERVE = NoReserve()
