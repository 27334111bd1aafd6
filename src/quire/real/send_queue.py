"""The send queue of one socket, which sends each part in the cheapest way.

Buffers and small file slices are joined into one sendmsg. The slices are read into a scratch buffer that all
connections share; bytes that the socket does not accept are simply read again later. Larger slices go from the page
cache to the socket with sendfile. The queue never waits for a slice that is not in the page cache: it raises
`ColdSlice`, whose `read` runs in a job, and continues after `is_warm`. The order is always kept.

A buffer that may change is copied only if it could not be sent at once. A file with a slice in the queue is held, so
its owner may rename, remove or close it meanwhile.
"""

import os
import socket
from collections import deque
from collections.abc import Iterable, Sequence

from quire.real.disk import RealFile
from quire.seams import Buffer, FileSlice, Part

SENDFILE_FROM_BYTES = 128 * 1024
"""Below this, copying through a buffer costs less than a separate system call."""
_AT_ONCE_BYTES = 2 * 1024 * 1024
"""How much one connection sends before other connections have their turn."""
_WARM_BYTES = 1024 * 1024
"""How much of a large slice is checked, and read ahead, at a time."""
_READ_BYTES = 128 * 1024
_IOV_MAX = 256
_MORE = getattr(socket, "MSG_MORE", 0)
"""More follows at once: the kernel may wait for it instead of sending a partial packet."""


class ColdSlice(Exception):  # noqa: N818
    """The first slice of the queue is not in memory. This is not an error: it ends the sending for now."""

    def __init__(self, file: RealFile, position: int, size: int, *, keep: bool) -> None:
        super().__init__(file.path, position, size)
        self.file = file
        self.position = position
        self.size = size
        self.keep = keep

    def read(self) -> bytes | None:
        """Blocks until the range is in the page cache; returns the bytes of a small one, to be sent instead."""
        if self.keep:
            return self.file.pread(self.size, self.position)
        scratch = bytearray(_READ_BYTES)
        for at in range(self.position, self.position + self.size, _READ_BYTES):
            self.file.pread_into(scratch, at)
        self.file.read_soon(_WARM_BYTES, self.position + self.size)
        return None


class _Held(FileSlice):
    """A slice whose file the queue holds."""

    __slots__ = ()


class SendQueue:
    __slots__ = ("_parts", "_scratch", "_socket", "_warm_until", "size")

    def __init__(self, connection: socket.socket, scratch: memoryview) -> None:
        self.size = 0
        """Queued bytes, with file slices."""
        self._socket = connection
        self._scratch = scratch
        self._parts: deque[Part] = deque()
        self._warm_until = 0
        """The position up to which the file of the first slice, a large one, was in memory."""

    def send_at_once(self, parts: Sequence[Part]) -> None:
        """Sends as much as the socket accepts, and copies or holds only the rest. The queue must be empty."""
        buffers, size, all_of_it = self._gather(parts)
        sent = 0
        if buffers:
            try:
                sent = self._socket.sendmsg(buffers, (), 0 if all_of_it else _MORE)
            except BlockingIOError:
                sent = 0
            if sent == size and all_of_it:
                return
        for part in parts:
            if part_size := len(part):
                self._parts.append(part)
                self.size += part_size
        self._sent(sent)
        try:
            if sent == size:
                self.send()
        finally:
            self._keep_rest()

    def add(self, parts: Sequence[Part]) -> None:
        """Queues the parts after those that are already queued."""
        for part in parts:
            if part_size := len(part):
                self._parts.append(_kept(part))
                self.size += part_size

    def send(self) -> None:
        """Sends until the queue is empty, the socket is full, or it is the turn of others."""
        budget = _AT_ONCE_BYTES
        try:
            while self._parts and budget > 0:
                first = self._parts[0]
                if isinstance(first, FileSlice) and first.size >= SENDFILE_FROM_BYTES:
                    budget -= self._send_file(first)
                else:
                    budget -= self._send_joined(first)
        except BlockingIOError:
            pass

    def is_warm(self, cold: ColdSlice, data: bytes | None) -> None:
        """The cold slice has been read; `data` is the result of `ColdSlice.read`."""
        if data is None:
            self._warm_until = cold.position + cold.size
            return
        if len(data) < cold.size:
            raise _ends_too_early(cold.file)
        self._drop_first()
        self._parts.appendleft(data)

    def clear(self) -> None:
        while self._parts:
            self._drop_first()
        self.size = 0

    def _gather(self, parts: Iterable[Part]) -> tuple[list[Buffer], int, bool]:
        """The buffers for one sendmsg from the front of the queue, their size, and whether they are the whole queue."""
        buffers: list[Buffer] = []
        size = 0
        used = 0
        for part in parts:
            part_size = len(part)
            if not part_size:
                continue
            if len(buffers) == _IOV_MAX:
                return buffers, size, False
            if isinstance(part, FileSlice):
                if part_size >= SENDFILE_FROM_BYTES or used + part_size > len(self._scratch):
                    return buffers, size, False
                room = self._scratch[used : used + part_size]
                if _real(part).pread_ready(room, part.position) < part_size:
                    return buffers, size, False
                buffers.append(room)
                used += part_size
            else:
                buffers.append(part)
            size += part_size
        return buffers, size, True

    def _send_joined(self, first: Part) -> int:
        buffers, size, all_of_it = self._gather(self._parts)
        if not buffers:
            assert isinstance(first, FileSlice)
            raise ColdSlice(_real(first), first.position, first.size, keep=True)
        sent = self._socket.sendmsg(buffers, (), 0 if all_of_it else _MORE)
        self._sent(sent)
        if sent < size:
            raise BlockingIOError
        return sent

    def _send_file(self, part: FileSlice) -> int:
        file = _real(part)
        if part.position >= self._warm_until:
            count = min(part.size, _WARM_BYTES)
            if not file.cached(count, part.position):
                raise ColdSlice(file, part.position, count, keep=False)
            self._warm_until = part.position + count
        # The checked part is sent before more is checked: a socket accepts it in pieces.
        count = self._warm_until - part.position
        number = file.acquire()
        try:
            sent = os.sendfile(self._socket.fileno(), number, part.position, count)
        finally:
            file.release()
        if sent == 0:
            raise _ends_too_early(file)
        self._sent(sent)
        if sent < count:
            raise BlockingIOError
        return sent

    def _sent(self, count: int) -> None:
        self.size -= count
        parts = self._parts
        while count:
            first = parts[0]
            size = len(first)
            if count >= size:
                count -= size
                self._drop_first()
            elif isinstance(first, FileSlice):
                parts[0] = type(first)(first.file, first.position + count, size - count)
                return
            else:
                parts[0] = memoryview(first)[count:]
                return

    def _drop_first(self) -> None:
        first = self._parts.popleft()
        if isinstance(first, FileSlice):
            self._warm_until = 0
            if isinstance(first, _Held):
                _real(first).unhold()

    def _keep_rest(self) -> None:
        """Copies or holds the parts that could not be sent at once, which the caller may change."""
        for i, part in enumerate(self._parts):
            self._parts[i] = _kept(part)


def _kept(part: Part) -> Part:
    if isinstance(part, FileSlice):
        _real(part).hold()
        return _Held(part.file, part.position, part.size)
    if isinstance(part, bytes) or (isinstance(part, memoryview) and isinstance(part.obj, bytes)):
        return part
    return bytes(part)


def _real(part: FileSlice) -> RealFile:
    assert isinstance(part.file, RealFile), "sockets send files of the real disk"
    return part.file


def _ends_too_early(file: RealFile) -> OSError:
    return OSError(f"{file.path} ends before the end of the slice to be sent")
