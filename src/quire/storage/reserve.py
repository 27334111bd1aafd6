"""Room that a node sets aside on the disk of its metadata log, so that a full disk can still be emptied.

Who wants to make room deletes topics or records, and the first needs a record in the metadata log; so does every start.
Therefore a file of `quire.reserve.bytes` stands beside the metadata log. When that log finds no room, the file is
removed and the write repeated. The room it leaves is for the metadata alone: as long as the file is missing, logs on
the same disk refuse what clients send, as if there were no room at all. It is made again by the first write of a client
that finds enough room, or by the next start.
"""

import errno
import logging
from contextlib import closing, suppress

from quire.seams import Disk, Random

FILE_NAME = "quire.reserve"

_BLOCK_BYTES = 256 << 10
"""Written over and over: longer than what file systems compress at once, so that it takes the room it should."""

_log = logging.getLogger("quire.storage")


class Reserve:
    __slots__ = ("_disk", "_folder", "_path", "_random", "_size_bytes", "is_missing")

    def __init__(self, disk: Disk, random: Random, folder: str, size_bytes: int) -> None:
        """As the last run left it; see `set_aside`."""
        self._disk = disk
        self._random = random
        self._folder = folder
        self._path = f"{folder}/{FILE_NAME}"
        self._size_bytes = size_bytes
        self.is_missing = size_bytes > 0 and not self._is_whole()
        """Whether what room there is belongs to the metadata. Read by every append, so kept to an attribute."""

    def _is_whole(self) -> bool:
        return self._disk.exists(self._path) and self._disk.file_size(self._path) >= self._size_bytes

    def set_aside(self) -> bool:
        """Makes the file if it is missing, and there is room for twice as much; whether it is there. May block."""
        if self.is_missing and self._disk.free_bytes(self._folder) >= 2 * self._size_bytes:
            try:
                self._write()
                self.is_missing = False
            except OSError as error:
                with suppress(OSError):
                    self._disk.remove(self._path)
                _log.error("no room could be set aside in %s: %s", self._path, error)
        return not self.is_missing

    def _write(self) -> None:
        block = self._random.random_bytes(min(_BLOCK_BYTES, self._size_bytes))
        with closing(self._disk.open(self._path, create=True)) as file:
            for position in range(0, self._size_bytes, len(block)):
                file.pwritev([block[: self._size_bytes - position]], position)
            file.truncate(self._size_bytes)

    def release(self) -> bool:
        """Removes the file if it is there; whether it was. May be called in a job."""
        if self.is_missing or not self._size_bytes:
            return False
        self.is_missing = True
        _log.error(
            "the disk of %s is full: %d bytes that were set aside are for metadata now, and nothing else is written "
            "until there is room again; delete topics or records, or make room otherwise",
            self._folder,
            self._size_bytes,
        )
        try:
            self._disk.remove(self._path)
        except FileNotFoundError:
            return False
        return True

    def no_room(self, path: str) -> OSError:
        """What a log raises that is to leave the room there is to the metadata."""
        return OSError(errno.ENOSPC, "No space left on device but for metadata", path)


class NoReserve(Reserve):
    """Of a disk that has no metadata log on it."""

    __slots__ = ()

    def __init__(self) -> None:
        self.is_missing = False

    def set_aside(self) -> bool:
        return True

    def release(self) -> bool:
        return False


NO_RESERVE = NoReserve()
