"""Memory that requests are received into, shared by all connections.

A connection owns a buffer only while an incomplete request is in it, so idle connections own none. Most requests fit
into a small buffer, which is always available. Memory for larger requests is limited for the whole server: when the
limit is reached, `large` returns None and the connection waits in a queue. A quarter of the limit is reserved for
modest requests, so that a few huge ones never delay an ordinary produce. Some buffers are kept for the next request,
because allocating memory costs more than the request itself.

A modest request reserves all the memory that it needs from the beginning, although its buffer grows with what has
arrived. So it never waits for more while it holds some, and the queue moves whenever one of them is done.

A connection is proven if a request as large as the incomplete one has arrived completely before. Proven connections
have an eighth more memory and a queue of their own. So clients that are known to send what they announce are hardly
delayed by clients that announce much and send little. Within a queue memory is given out in order: otherwise small
requests could keep a larger one waiting forever.

A request that is partly handled later may `hold` the buffer that contains it: if the buffer is returned meanwhile, it
stays in use, and counts as such, until `unhold`.
"""

from collections import OrderedDict
from collections.abc import Callable

SMALL_BYTES = 16 * 1024
MODEST_BYTES = 1088 * 1024
"""A megabyte and its surroundings: clients send no larger requests unless they are configured to."""
_ROUND_BYTES = 64 * 1024
_KEEP_LARGE = 64


_Queue = OrderedDict[object, Callable[[], bool]]


class _Share:
    """The memory that requests of one kind may use, and the connections that wait for it."""

    __slots__ = ("_others", "_proven", "_proven_is_next", "beyond", "limit_bytes", "reserve_bytes")

    def __init__(self, limit_bytes: int, reserve_bytes: int = 0) -> None:
        self.limit_bytes = limit_bytes
        self.reserve_bytes = reserve_bytes
        """What proven connections may use in addition."""
        self.beyond: memoryview | None = None
        """The one buffer that was allocated beyond the limit."""
        self._proven: _Queue = OrderedDict()
        self._others: _Queue = OrderedDict()
        self._proven_is_next = True

    @property
    def is_waited_for(self) -> bool:
        return bool(self._proven or self._others)

    def must_wait(self, proven: bool) -> bool:
        """Whether other connections wait that come first."""
        return bool(self._proven or (self._others and not proven))

    def wait(self, owner: object, retry: Callable[[], bool], *, proven: bool) -> None:
        line = self._proven if proven else self._others
        line[owner] = retry

    def stop_waiting(self, owner: object) -> None:
        self._proven.pop(owner, None)
        self._others.pop(owner, None)

    def serve(self) -> None:
        """Serves both queues alternately. If a proven connection cannot be served in its turn, no other gets memory."""
        while self._proven or self._others:
            if self._others and not (self._proven and self._proven_is_next) and _serve_first(self._others):
                self._proven_is_next = True
            elif self._proven and _serve_first(self._proven):
                self._proven_is_next = False
            else:
                return


def _serve_first(line: _Queue) -> bool:
    owner, retry = line.popitem(last=False)
    served = retry()
    if not served:
        line[owner] = retry
        line.move_to_end(owner, last=False)
    return served


def _rounded(size: int) -> int:
    return -(-size // _ROUND_BYTES) * _ROUND_BYTES


class _Hold:
    __slots__ = ("memory", "returned", "users")

    def __init__(self, memory: object) -> None:
        self.memory = memory
        self.users = 0
        self.returned: memoryview | None = None
        """The buffer, if it was returned meanwhile."""


class BufferPool:
    def __init__(self, limit_bytes: int, *, keep_bytes: int = 16 * 1024 * 1024, keep_small: int = 64) -> None:
        self.in_use_bytes = 0
        """The size of the large buffers that connections own."""
        self._keep_bytes = keep_bytes
        self._keep_small = keep_small
        self.small_kept: list[memoryview] = []
        """Free small buffers. A FrameReader pops them itself, because it does so for every small request."""
        self._large: list[memoryview] = []
        self._kept_bytes = 0
        self._modest = _Share(limit_bytes, limit_bytes // 8)
        self._huge = _Share(limit_bytes * 3 // 4)
        self._held_beyond: dict[int, int] = {}
        """The memory that modest requests have reserved in addition to their buffers, by the buffer's id."""
        self._serving = False
        self._held: dict[int, _Hold] = {}
        """By the id of the buffer's memory, which views of its parts have too."""

    def small(self) -> memoryview:
        return self.small_kept.pop() if self.small_kept else memoryview(bytearray(SMALL_BYTES))

    def spare(self, size: int) -> memoryview | None:
        """A kept buffer of at least `size` bytes, if there is one, the limit allows it and no connection waits."""
        share = self._share(size)
        return None if share.must_wait(proven=True) else self._take_within(self._left(share, proven=True), size)

    def large(self, wanted: int, enough: int, *, instead_of: memoryview, proven: bool = False) -> memoryview | None:
        """A kept buffer of at least `wanted` bytes, or else one of at least `enough`; None over the limit.

        None as well if others wait and it is not the caller's turn (`wait`). The caller returns `instead_of` next. If
        all connections over the limit waited, none might ever finish, so one at a time may exceed it.
        """
        share = self._share(wanted)
        if id(instead_of) in self._held_beyond:
            held = self.held_bytes(instead_of)
            grown = self._take_within(held, wanted) or self._new(enough, held)
            if share.beyond is instead_of:
                share.beyond = grown
            return grown
        if not self._serving and share.must_wait(proven) and share.beyond is not instead_of:
            return None
        left = self._left(share, proven)
        buffer = self._take_within(left, wanted) or self._take_within(left, enough)
        if buffer is not None:
            return buffer
        held = _rounded(wanted if share is self._modest else enough)
        beyond = held > left
        if beyond and share.beyond is not None and share.beyond is not instead_of:
            return None
        buffer = self._new(enough, held)
        if beyond:
            share.beyond = buffer
        return buffer

    @property
    def held(self) -> int:
        """How many buffers requests hold."""
        return len(self._held)

    def hold(self, part: memoryview) -> None:
        """Keeps the buffer that `part` is a view of from being reused; each call needs one `unhold`."""
        held = self._held.setdefault(id(part.obj), _Hold(part.obj))
        held.users += 1

    def unhold(self, part: memoryview) -> None:
        held = self._held[id(part.obj)]
        held.users -= 1
        if not held.users:
            del self._held[id(part.obj)]
            if held.returned is not None:
                self.give_back(held.returned)

    def give_back(self, buffer: memoryview) -> None:
        if self._held and (held := self._held.get(id(buffer.obj))) is not None:
            held.returned = buffer
            return
        if len(buffer) == SMALL_BYTES:
            if len(self.small_kept) < self._keep_small:
                self.small_kept.append(buffer)
            return
        self.in_use_bytes -= len(buffer) + self._held_beyond.pop(id(buffer), 0)
        self._keep(buffer)
        for share in (self._modest, self._huge):
            if buffer is share.beyond or self.in_use_bytes <= share.limit_bytes:
                share.beyond = None
        # A connection that gets a buffer returns its previous one; the running loop serves that too.
        if not self._serving:
            self._serving = True
            try:
                self._modest.serve()
                self._huge.serve()
            finally:
                self._serving = False

    def held_bytes(self, buffer: memoryview) -> int:
        """The memory that the owner of a large buffer has reserved."""
        return len(buffer) + self._held_beyond.get(id(buffer), 0)

    def wait(self, owner: object, wanted: int, retry: Callable[[], bool], *, proven: bool = False) -> None:
        """Calls `retry` when memory was returned and `owner` is first in the queue, until it returns true.

        `proven` says that a large request of the owner has arrived completely before.
        """
        self._share(wanted).wait(owner, retry, proven=proven)

    def stop_waiting(self, owner: object) -> None:
        self._modest.stop_waiting(owner)
        self._huge.stop_waiting(owner)

    @property
    def is_short(self) -> bool:
        """Whether a connection waits for memory."""
        return self._modest.is_waited_for or self._huge.is_waited_for

    def _share(self, wanted: int) -> _Share:
        return self._modest if wanted <= MODEST_BYTES else self._huge

    def _left(self, share: _Share, proven: bool) -> int:
        """The free memory of a share. The one huge buffer beyond its limit does not count against modest requests."""
        left = share.limit_bytes - self.in_use_bytes + (share.reserve_bytes if proven else 0)
        if share is self._modest and self._huge.beyond is not None:
            left += len(self._huge.beyond)
        return left

    def _new(self, size: int, held: int) -> memoryview:
        """A buffer of at least `size` bytes, for a request that reserves `held`."""
        buffer = memoryview(bytearray(_rounded(size)))
        if held > len(buffer):
            self._held_beyond[id(buffer)] = held - len(buffer)
        self.in_use_bytes += self.held_bytes(buffer)
        return buffer

    def _take_within(self, left: int, size: int) -> memoryview | None:
        buffer = self._take_kept(size)
        if buffer is not None:
            if len(buffer) > left:
                self._keep(buffer)
                return None
            self.in_use_bytes += len(buffer)
        return buffer

    def _keep(self, buffer: memoryview) -> None:
        """Keeps a buffer and drops those that were unused for longest, unless it is larger than half of the limit."""
        if len(buffer) <= self._keep_bytes // 2:
            while self._large and (
                self._kept_bytes + len(buffer) > self._keep_bytes or len(self._large) >= _KEEP_LARGE
            ):
                self._kept_bytes -= len(self._large.pop(0))
        if self._kept_bytes + len(buffer) <= self._keep_bytes and len(self._large) < _KEEP_LARGE:
            self._kept_bytes += len(buffer)
            self._large.append(buffer)

    def _take_kept(self, size: int) -> memoryview | None:
        """A kept buffer that is large enough: the last one returned that fits well, or else the smallest."""
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
