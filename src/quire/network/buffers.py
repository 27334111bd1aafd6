"""Memory that requests are received into, shared by all connections.

A connection owns a buffer only while bytes of an incomplete request are in it, so idle connections own none. Most
requests fit a small buffer, of which there is always one. Larger ones come out of a limit for the whole server: when it
is reached, `large` says so and the connection waits its turn. A few buffers are kept for the next request, because
fresh memory costs more than the request itself.
"""

from collections import deque
from collections.abc import Callable

SMALL_BYTES = 16 * 1024
_ROUND_BYTES = 64 * 1024
_KEEP_LARGE = 64


class BufferPool:
    def __init__(self, limit_bytes: int, *, keep_bytes: int = 16 * 1024 * 1024, keep_small: int = 64) -> None:
        self.limit_bytes = limit_bytes
        self.in_use_bytes = 0
        """Large buffers that connections own now."""
        self._keep_bytes = keep_bytes
        self._keep_small = keep_small
        self.small_kept: list[memoryview] = []
        """Small buffers that nobody owns. Readers may pop one themselves: that is every small request's way."""
        self._large: list[memoryview] = []
        self._kept_bytes = 0
        self._beyond: memoryview | None = None
        self._waiting: deque[tuple[object, Callable[[], bool]]] = deque()

    def small(self) -> memoryview:
        return self.small_kept.pop() if self.small_kept else memoryview(bytearray(SMALL_BYTES))

    def spare(self, size: int) -> memoryview | None:
        """A kept buffer of at least `size` bytes, if there is one."""
        buffer = self._take_kept(size)
        if buffer is not None:
            self.in_use_bytes += len(buffer)
        return buffer

    def large(self, wanted: int, enough: int, *, instead_of: memoryview) -> memoryview | None:
        """A buffer of at least `wanted` bytes if one lies about, of at least `enough` if not; None over the limit.

        The caller gives `instead_of` back next. Were everybody over the limit to wait, nobody might ever finish: so one
        at a time may go beyond it.
        """
        buffer = self._take_kept(wanted) or self._take_kept(enough)
        size = len(buffer) if buffer is not None else -(-enough // _ROUND_BYTES) * _ROUND_BYTES
        beyond = self.in_use_bytes + size > self.limit_bytes
        if beyond and self._beyond is not None and self._beyond is not instead_of:
            if buffer is not None:
                self._keep(buffer)
            return None
        if buffer is None:
            buffer = memoryview(bytearray(size))
        if beyond:
            self._beyond = buffer
        self.in_use_bytes += size
        return buffer

    def give_back(self, buffer: memoryview) -> None:
        if len(buffer) == SMALL_BYTES:
            if len(self.small_kept) < self._keep_small:
                self.small_kept.append(buffer)
            return
        self.in_use_bytes -= len(buffer)
        if buffer is self._beyond or self.in_use_bytes <= self.limit_bytes:
            self._beyond = None
        self._keep(buffer)
        while self._waiting:
            owner, retry = self._waiting.popleft()
            if not retry():
                self._waiting.appendleft((owner, retry))
                break

    def wait(self, owner: object, retry: Callable[[], bool]) -> None:
        """Calls `retry` when memory has come back and `owner` is first in line, until it says that it got some."""
        self._waiting.append((owner, retry))

    def stop_waiting(self, owner: object) -> None:
        self._waiting = deque(entry for entry in self._waiting if entry[0] is not owner)

    def _keep(self, buffer: memoryview) -> None:
        if self._kept_bytes + len(buffer) <= self._keep_bytes and len(self._large) < _KEEP_LARGE:
            self._kept_bytes += len(buffer)
            self._large.append(buffer)

    def _take_kept(self, size: int) -> memoryview | None:
        """A kept buffer that is large enough: the last one given back that fits well, or else the smallest."""
        best, best_size = -1, 0
        for i in range(len(self._large) - 1, -1, -1):
            size_kept = len(self._large[i])
            if size_kept >= size and (best < 0 or size_kept < best_size):
                best, best_size = i, size_kept
                if size_kept <= 2 * size:
                    break
        if best < 0:
            return None
        self._kept_bytes -= best_size
        return self._large.pop(best)
