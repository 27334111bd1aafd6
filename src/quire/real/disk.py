"""Files of the operating system.

`OpenFiles` manages the descriptors: there may be more open files than descriptors, and a file that is renamed or
removed stays readable for users that have it open. Sockets hold a file until a slice of it is sent, so its owner may
close it meanwhile.

For a growing file, the blocks of the next writes are allocated in one step (see `RealFile`).
"""

import fcntl
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress

from quire.real.open_files import OpenFile, OpenFiles, raise_descriptor_limit
from quire.real.page_cache import page_cache_id
from quire.real.reserve_native import reserve
from quire.seams.disk import Buffer

_IOV_MAX = 1024
_READ_BYTES = 64 * 1024
_NOWAIT = getattr(os, "RWF_NOWAIT", None)
_PROBE_STRIDE = 128 * 1024
"""The kernel reads ahead in steps of this size, so the bytes between two cached probes are almost certainly cached."""

_RESERVE_FROM = 8 << 20
_RESERVE_SHARE = 8
_RESERVE_MAX = 4 << 20
_LEAVE_FREE = 1 << 30


class RealFile(OpenFile):
    """A file of `RealDisk`. It may be used from the event loop and from jobs at the same time.

    By default ext4 allocates block by block as a file grows, which is a quarter of the cost of a large write. So from
    8 MB on, an eighth of the file's size is allocated at once, at most 4 MB, without making the file longer. `trim` and
    `truncate` free what is left of it; after a kill it stays with the file. The disk's last gigabyte is not allocated
    in advance.
    """

    __slots__ = ("_has_reserved", "_reserve_at")

    def __init__(self, files: OpenFiles, path: str, *number: int) -> None:
        self._reserve_at = _RESERVE_FROM
        """Nothing is allocated from this position on."""
        self._has_reserved = False
        super().__init__(files, path, *number)

    def size(self) -> int:
        number = self.acquire()
        try:
            return os.fstat(number).st_size
        finally:
            self.release()

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> int:
        number = self.acquire()
        try:
            if position >= self._reserve_at:
                self._reserve(number, position)
            if len(buffers) == 1:
                written = os.pwrite(number, buffers[0], position)
                if written == len(buffers[0]):
                    return written
            elif len(buffers) <= _IOV_MAX:
                written = os.pwritev(number, buffers, position)
                if written == sum(map(len, buffers)):
                    return written
            else:
                written = 0
            return _write_rest(number, buffers, position, written)
        finally:
            self.release()

    def _reserve(self, number: int, position: int) -> None:
        size = min(position // _RESERVE_SHARE, _RESERVE_MAX)
        disk = os.fstatvfs(number)
        enough = disk.f_bavail * disk.f_frsize >= _LEAVE_FREE + size
        if not enough:
            self._reserve_at = position + size
        elif reserve(number, position, size):
            self._reserve_at = position + size
            self._has_reserved = True
        else:
            # The file system does not support this; it is not tried again.
            self._reserve_at = sys.maxsize

    def pread(self, size: int, position: int) -> bytes:
        number = self.acquire()
        try:
            data = os.pread(number, size, position)
            if len(data) == size or not data:
                return data
            pieces = [data]
            got = len(data)
            while got < size and data:
                data = os.pread(number, size - got, position + got)
                pieces.append(data)
                got += len(data)
            return b"".join(pieces)
        finally:
            self.release()

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        number = self.acquire()
        try:
            got = os.preadv(number, [buffer], position)
            view = memoryview(buffer)
            while 0 < got < len(view):
                more = os.preadv(number, [view[got:]], position + got)
                if more == 0:
                    break
                got += more
            return got
        finally:
            self.release()

    def pread_ready(self, buffer: memoryview, position: int) -> int:
        """Reads the part of the range that is in memory; never waits for the disk if the kernel supports that."""
        if _NOWAIT is None:
            return self.pread_into(buffer, position)
        number = self.acquire()
        try:
            return os.preadv(number, [buffer], position, _NOWAIT)
        except BlockingIOError:
            return 0
        except OSError:
            return os.preadv(number, [buffer], position)
        finally:
            self.release()

    def cached(self, size: int, position: int) -> bool:
        if _NOWAIT is None or size <= 0:
            return True
        number = self.acquire()
        try:
            byte = [bytearray(1)]
            for probe in range(position, position + size - 1, _PROBE_STRIDE):
                os.preadv(number, byte, probe, _NOWAIT)
            os.preadv(number, byte, position + size - 1, _NOWAIT)
        except BlockingIOError:
            return False
        except OSError:
            # The file system does not support this; only a read would show it.
            return True
        finally:
            self.release()
        return True

    def read_soon(self, size: int, position: int) -> None:
        """Makes the kernel begin to read this range, without waiting for it."""
        if hasattr(os, "posix_fadvise"):
            number = self.acquire()
            try:
                os.posix_fadvise(number, position, size, os.POSIX_FADV_WILLNEED)
            finally:
                self.release()

    def truncate(self, size: int) -> None:
        number = self.acquire()
        try:
            os.ftruncate(number, size)
            self._nothing_reserved()
        finally:
            self.release()

    def trim(self) -> None:
        """Frees space only, and keeps the time of the last write. The caller need not know of a failure."""
        if not self._has_reserved:
            return
        with suppress(OSError):
            number = self.acquire()
            try:
                written = os.fstat(number)
                os.ftruncate(number, written.st_size)
                os.utime(number, ns=(written.st_mtime_ns, written.st_mtime_ns))
                self._nothing_reserved()
            finally:
                self.release()

    def _nothing_reserved(self) -> None:
        self._reserve_at = _RESERVE_FROM
        self._has_reserved = False

    def sync(self) -> None:
        """After this the bytes and the length survive a power loss."""
        number = self.acquire()
        try:
            _sync_data(number)
        finally:
            self.release()

    def __repr__(self) -> str:
        return f"RealFile({self.path!r})"


class RealDisk:
    """The file system as the process sees it. `open_files` limits its descriptors; the default is half of all.

    With `read_only`, reading files and locking existing ones needs no permission to write, as for a backup.
    """

    def __init__(self, open_files: int | None = None, *, read_only: bool = False) -> None:
        limit = open_files if open_files is not None else max(16, raise_descriptor_limit() // 2)
        self._files = OpenFiles(limit, read_only=read_only)
        self._read_only = read_only

    @property
    def descriptors(self) -> int:
        """How many descriptors its files use."""
        return self._files.descriptors

    def open(self, path: str, *, create: bool = False) -> RealFile:
        if create:
            return RealFile(self._files, path, os.open(path, os.O_RDWR | os.O_CREAT, 0o644))
        os.stat(path)
        return RealFile(self._files, path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_dir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_dirs(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        with self._files.moving(source, target):
            os.rename(source, target)

    def remove(self, path: str) -> None:
        self._files.removing(path)
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        self._files.removing(path)
        shutil.rmtree(path)

    def sync_dir(self, path: str) -> None:
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(number)
        finally:
            os.close(number)

    def read_file(self, path: str) -> bytes:
        # Without a buffered file object: a start reads thousands of files, most of them small.
        number = os.open(path, os.O_RDONLY)
        try:
            pieces = []
            while piece := os.read(number, _READ_BYTES):
                pieces.append(piece)
            return b"".join(pieces)
        finally:
            os.close(number)

    def file_size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def free_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def total_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize

    def is_same_disk(self, path: str, other: str) -> bool:
        return os.stat(path).st_dev == os.stat(other).st_dev

    def cache_id(self, path: str) -> str | None:
        return page_cache_id(path)

    def lock(self, path: str) -> RealFile | None:
        """Takes two locks: lockf as Apache Kafka does, and flock, which also refuses a second lock by this process."""
        flags, kind = os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX
        if self._read_only:
            # A shared lock is all that a descriptor for reading can have; a node's exclusive lock excludes it too.
            flags, kind = os.O_RDONLY, fcntl.LOCK_SH
        number = os.open(path, flags, 0o644)
        try:
            fcntl.flock(number, kind | fcntl.LOCK_NB)
            fcntl.lockf(number, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(number)
            return None
        except OSError:
            os.close(number)
            raise
        file = RealFile(self._files, path, number)
        file.pin()
        return file


def _write_rest(number: int, buffers: Sequence[Buffer], position: int, written: int) -> int:
    """Continues after a short write. If the disk is full, the next write raises."""
    rest = []
    skip = written
    for buffer in buffers:
        if skip >= len(buffer):
            skip -= len(buffer)
        else:
            rest.append(memoryview(buffer)[skip:])
            skip = 0
    first = 0
    while first < len(rest):
        count = os.pwritev(number, rest[first : first + _IOV_MAX], position + written)
        written += count
        while first < len(rest) and count >= len(rest[first]):
            count -= len(rest[first])
            first += 1
        if count:
            rest[first] = rest[first][count:]
    return written


_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)


def _sync_data(number: int) -> None:
    if _FULL_SYNC is not None:
        # macOS: a plain fsync leaves the bytes in the drive's cache.
        fcntl.fcntl(number, _FULL_SYNC)
    else:
        # fdatasync also writes the length and the block map; it only leaves out times and modes, which are not used.
        os.fdatasync(number)
