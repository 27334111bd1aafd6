"""Files of the operating system.

Descriptors come from `OpenFiles`, so there may be more open files than descriptors, and a file that is renamed or
removed stays readable for whoever has it open. Sockets hold a file until a slice of it has been sent, so that its owner
may close it meanwhile.

A file that grows has the blocks for what comes next set aside in one go (see `RealFile`).
"""

import fcntl
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress

from quire.real.open_files import OpenFile, OpenFiles, raise_descriptor_limit
from quire.real.reserve_native import reserve
from quire.seams.disk import Buffer

_IOV_MAX = 1024
_READ_BYTES = 64 * 1024
_NOWAIT = getattr(os, "RWF_NOWAIT", None)
_PROBE_STRIDE = 128 * 1024
"""The kernel reads ahead in steps of this size, so what lies between two cached probes is almost surely cached."""

_RESERVE_FROM = 8 << 20
_RESERVE_SHARE = 8
_RESERVE_MAX = 4 << 20
_LEAVE_FREE = 1 << 30


class RealFile(OpenFile):
    """A file of `RealDisk`. Safe to use from the event loop and from jobs at once.

    Left to itself, ext4 looks for room block by block as a file grows: a quarter of what a large write costs. So from
    8 MB on an eighth of what is there already is set aside at once, at most 4 MB, without making the file longer.
    `trim` and `truncate` give back what is left of it; after a kill it stays with the file. The disk's last gigabyte is
    not set aside: who writes gets it, block by block.
    """

    __slots__ = ("_has_reserved", "_reserve_at")

    def __init__(self, files: OpenFiles, path: str, *number: int) -> None:
        self._reserve_at = _RESERVE_FROM
        """A write here or behind finds nothing set aside."""
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
            # A file system that cannot do it once is not asked again.
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
        """As much of the range as is in memory now: never waits for the disk where the kernel can tell."""
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
            # This file system cannot tell: reading is the only way to find out.
            return True
        finally:
            self.release()
        return True

    def read_soon(self, size: int, position: int) -> None:
        """Lets the kernel begin to read this range, without waiting for it."""
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
        """Only space is given back, and the time of the last write stays: whoever calls need not know of a failure."""
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
        """After this the bytes and the length survive a power cut."""
        number = self.acquire()
        try:
            _sync_data(number)
        finally:
            self.release()

    def __repr__(self) -> str:
        return f"RealFile({self.path!r})"


class RealDisk:
    """The file system as the process sees it. `open_files` is how many descriptors it may use: half of all, at most."""

    def __init__(self, open_files: int | None = None) -> None:
        self._files = OpenFiles(open_files if open_files is not None else max(16, raise_descriptor_limit() // 2))

    @property
    def descriptors(self) -> int:
        """How many descriptors its files use now."""
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
        # Without a buffered file around it: at a start there are thousands of files to be read, most of them small.
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

    def lock(self, path: str) -> RealFile | None:
        """Two locks in one: lockf is what Apache Kafka takes, flock also refuses this process a second time."""
        number = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
    """Carries on after a short write. A full disk raises on the next one."""
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
        # macOS: plain fsync leaves the bytes in the drive's own cache.
        fcntl.fcntl(number, _FULL_SYNC)
    else:
        # fdatasync also writes the length and the block map; it only leaves out times and modes, which nobody reads.
        os.fdatasync(number)
