"""Memory that requests are received into, shared by all connections.

A connection owns a buffer only while bytes of an incomplete request are in it, so idle connections own none. Most
requests fit a small buffer, of which there is always one. Larger ones come out of a limit for the whole server: when it
is reached, `large` says so and the connection waits its turn. A quarter of it is for modest requests alone, so that a
few huge ones never hold up the usual produce. A few buffers are kept for the next request, because fresh memory costs
more than the request itself.
"""

from collections import OrderedDict
from collections.abc import Callable

SMALL_BYTES = 16 * 1024
MODEST_BYTES = 1088 * 1024
"""A megabyte and what stands around it: clients send no larger requests unless they are told to."""
_ROUND_BYTES = 64 * 1024
_KEEP_LARGE = 64


class _Share:
    """What requests of one kind may use of the memory, and which of them wait."""

    __slots__ = ("beyond", "limit_bytes", "waiting")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.beyond: memoryview | None = None
        """The one buffer that was handed out beyond the limit."""
        self.waiting: OrderedDict[object, Callable[[], bool]] = OrderedDict()


class BufferPool:
    def __init__(self, limit_bytes: int, *, keep_bytes: int = 16 * 1024 * 1024, keep_small: int = 64) -> None:
        self.in_use_bytes = 0
        """Large buffers that connections own now."""
        self._keep_bytes = keep_bytes
        self._keep_small = keep_small
        self.small_kept: list[memoryview] = []
        """Small buffers that nobody owns. Readers may pop one themselves: that is every small request's way."""
        self._large: list[memoryview] = []
        self._kept_bytes = 0
        self._modest = _Share(limit_bytes)
        self._huge = _Share(limit_bytes * 3 // 4)
        self._serving = False

    def small(self) -> memoryview:
        return self.small_kept.pop() if self.small_kept else memoryview(bytearray(SMALL_BYTES))

    def spare(self, size: int) -> memoryview | None:
        """A kept buffer of at least `size` bytes, if there is one and the limit allows it."""
        return self._take_within(self._left(self._share(size)), size)

    def large(self, wanted: int, enough: int, *, instead_of: memoryview) -> memoryview | None:
        """A buffer of at least `wanted` bytes if one lies about, of at least `enough` if not; None over the limit.

        The caller gives `instead_of` back next. Were everybody over the limit to wait, nobody might ever finish: so one
        at a time may go beyond it.
        """
        share = self._share(wanted)
        left = self._left(share)
        buffer = self._take_within(left, wanted) or self._take_within(left, enough)
        if buffer is not None:
            return buffer
        size = -(-enough // _ROUND_BYTES) * _ROUND_BYTES
        beyond = size > left
        if beyond and share.beyond is not None and share.beyond is not instead_of:
            return None
        buffer = memoryview(bytearray(size))
        if beyond:
            share.beyond = buffer
        self.in_use_bytes += size
        return buffer

    def give_back(self, buffer: memoryview) -> None:
        if len(buffer) == SMALL_BYTES:
            if len(self.small_kept) < self._keep_small:
                self.small_kept.append(buffer)
            return
        self.in_use_bytes -= len(buffer)
        self._keep(buffer)
        for share in (self._modest, self._huge):
            if buffer is share.beyond or self.in_use_bytes <= share.limit_bytes:
                share.beyond = None
        # Whoever gets a buffer gives its former one back. That is for the loop that goes on already.
        if not self._serving:
            self._serving = True
            try:
                self._serve(self._modest.waiting)
                self._serve(self._huge.waiting)
            finally:
                self._serving = False

    def wait(self, owner: object, wanted: int, retry: Callable[[], bool]) -> None:
        """Calls `retry` when memory has come back and `owner` is first in line, until it says that it got some."""
        self._share(wanted).waiting[owner] = retry

    def stop_waiting(self, owner: object) -> None:
        self._modest.waiting.pop(owner, None)
        self._huge.waiting.pop(owner, None)

    @property
    def is_short(self) -> bool:
        """Whether anybody waits."""
        return bool(self._modest.waiting or self._huge.waiting)

    def _share(self, wanted: int) -> _Share:
        return self._modest if wanted <= MODEST_BYTES else self._huge

    def _left(self, share: _Share) -> int:
        """What a share allows now. The one huge buffer beyond its limit takes nothing away from modest requests."""
        left = share.limit_bytes - self.in_use_bytes
        if share is self._modest and self._huge.beyond is not None:
            left += len(self._huge.beyond)
        return left

    def _serve(self, waiting: OrderedDict[object, Callable[[], bool]]) -> None:
        while waiting:
            owner, retry = waiting.popitem(last=False)
            if not retry():
                waiting[owner] = retry
                waiting.move_to_end(owner, last=False)
                return

    def _take_within(self, left: int, size: int) -> memoryview | None:
        buffer = self._take_kept(size)
        if buffer is not None:
            if len(buffer) > left:
                self._keep(buffer)
                return None
            self.in_use_bytes += len(buffer)
        return buffer

    def _keep(self, buffer: memoryview) -> None:
        """Keeps a buffer, in the place of those that nobody has wanted for longest unless it is half of all."""
        if len(buffer) <= self._keep_bytes // 2:
            while self._large and (
                self._kept_bytes + len(buffer) > self._keep_bytes or len(self._large) >= _KEEP_LARGE
            ):
                self._kept_bytes -= len(self._large.pop(0))
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
