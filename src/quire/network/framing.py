"""Where a request begins and ends.

A request on the wire is a signed 32-bit length and that many bytes. `FrameReader` lends out room for the next bytes and
cuts what came into frames, in place: the frames of one receive are views of one buffer. A frame that does not fit a
small buffer moves to a large one, and its remaining bytes are received straight into that. The large buffer grows
with what has come, not with what was announced: announcing 100 MB and sending nothing costs 16 KB, and beyond a few
megabytes nobody is given more than twice what it has sent. A client that sends one large frame mostly sends another, so
the next one begins in a large buffer if one lies about.

    small   |= frame =|= frame =|= begin|                 the next frame is known to be larger than this buffer
    large   |= begin|.................................|   and goes on here, up to its end and a little beyond
"""

from collections.abc import Callable
from struct import Struct

from quire.network.buffers import SMALL_BYTES, BufferPool

_LENGTH = Struct(">i").unpack_from
_LENGTH_BYTES = 4
_SHORTEST_FRAME = 8
"""The shortest request header there is: API key, version and correlation id."""
_BEYOND_BYTES = 4096
"""Room behind a large frame's end: a receive that stops short of it shows that nothing else has come yet."""
_QUICK_GROWTH = 8
"""How much larger each next buffer of a frame is, up to a megabyte: the usual large frame is moved twice, no more.

Twice that if the frame then fits, so that its end is not moved."""
_QUICK_GROWTH_BYTES = 1024 * 1024
_GROWTH = 2
"""The same beyond that, where memory is what counts."""


class BadFrame(Exception):  # noqa: N818
    """What came is not a request; the text says why. There is no way to find the next one."""


class FrameReader:
    """Used in turns: `buffer`, `next_frame` until it gives None, `settle`."""

    __slots__ = (
        "_buffer",
        "_end",
        "_expected",
        "_largest",
        "_now_ms",
        "_pool",
        "_room_end",
        "_small",
        "_start",
        "frame_bytes_max",
        "held_since_ms",
    )

    def __init__(self, pool: BufferPool, frame_bytes_max: int, now_ms: Callable[[], float]) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.held_since_ms = 0.0
        """When the large buffer that is in use was got, or began to be used for the frame that is coming."""
        self._largest = 0
        """The largest of the large frames that have come whole, with its length."""
        self._now_ms = now_ms
        self._pool = pool
        self._small = pool.small_kept
        self._buffer: memoryview | None = None
        self._start = 0
        self._end = 0
        self._room_end = 0
        self._expected = 0
        """What the last frame, a large one, took with its length."""

    def buffer(self) -> memoryview:
        """Room for the next bytes."""
        buffer = self._buffer
        if buffer is not None:
            return buffer[self._end : self._room_end]
        self._start = self._end = 0
        if self._expected:
            buffer = self._pool.spare(self._expected + _BEYOND_BYTES)
            if buffer is not None:
                self._room_end = self._expected + _BEYOND_BYTES
                self._buffer = buffer
                self.held_since_ms = self._now_ms()
                return buffer[: self._room_end]
        self._room_end = SMALL_BYTES
        self._buffer = buffer = self._small.pop() if self._small else self._pool.small()
        return buffer

    def next_frame(self, received: int = 0) -> memoryview | None:
        """The next complete frame without its length, valid until `settle`; None when more bytes have to come.

        `received` is how many bytes have come into the room last asked for.
        """
        start = self._start
        self._end = end = self._end + received
        if end - start < _LENGTH_BYTES:
            return None
        assert self._buffer is not None
        assert end <= self._room_end, "more was received than there was room for"
        length: int = _LENGTH(self._buffer, start)[0]
        if not _SHORTEST_FRAME <= length <= self.frame_bytes_max:
            raise BadFrame(self._complaint(length))
        frame_end = start + _LENGTH_BYTES + length
        if frame_end > end:
            return None
        self._start = frame_end
        if length > SMALL_BYTES:
            self._expected = length + _LENGTH_BYTES
            if self._expected > self._largest:
                self._largest = self._expected
        else:
            self._expected = 0
        return self._buffer[start + _LENGTH_BYTES : frame_end]

    def put_back(self, frame: memoryview) -> None:
        """Makes the frame that was cut last the next one again."""
        self._start -= _LENGTH_BYTES + len(frame)

    def settle(self) -> bool:
        """Makes room for what has to come next, or gives the buffer back if nothing is in it.

        False if the server's memory for large requests is used up: nothing may be received until another try succeeds.
        """
        buffer = self._buffer
        if self._start == self._end or buffer is None:
            self.release()
            return True
        have = self._end - self._start
        need = _LENGTH_BYTES
        if have >= _LENGTH_BYTES:
            need += _LENGTH(buffer, self._start)[0]
        assert have < need, "a complete frame has not been asked for"
        if need <= SMALL_BYTES:
            self._settle_small(buffer, need)
            return True
        return self._settle_large(buffer, have, need)

    @property
    def incomplete(self) -> bool:
        """Whether bytes have come that no frame was made of yet."""
        return self._start < self._end

    @property
    def has_frame(self) -> bool:
        """Whether all of a frame has come that was not asked for yet."""
        have = self._end - self._start
        if self._buffer is None or have < _LENGTH_BYTES:
            return False
        length: int = _LENGTH(self._buffer, self._start)[0]
        return have >= _LENGTH_BYTES + length

    @property
    def large_bytes(self) -> int:
        """What the large buffer that is in use takes of the server's memory, if one is."""
        buffer = self._buffer
        return self._pool.held_bytes(buffer) if buffer is not None and len(buffer) > SMALL_BYTES else 0

    @property
    def unread_bytes(self) -> int:
        """What has come that no frame was made of yet."""
        return self._end - self._start

    @property
    def is_full(self) -> bool:
        """Whether all the room last asked for was used, so that there may be more to come at once."""
        return self._end == self._room_end

    @property
    def wanted_bytes(self) -> int:
        """The buffer that the frame that is coming needs in the end."""
        assert self._buffer is not None
        length: int = _LENGTH(self._buffer, self._start)[0]
        return _LENGTH_BYTES + length + _BEYOND_BYTES

    @property
    def is_proven(self) -> bool:
        """Whether a frame as large as the one that is coming has come whole before."""
        return self.wanted_bytes <= self._largest + _BEYOND_BYTES

    def shrink(self) -> None:
        """Gives the buffer back if nothing is in it, and a large one also if a small one will do."""
        have = self._end - self._start
        if not have:
            self.release()
        elif have < SMALL_BYTES and self.large_bytes:
            self._move_to(self._pool.small())
            self._room_end = SMALL_BYTES

    def release(self) -> None:
        """Gives the buffer back with whatever is in it."""
        if self._buffer is not None:
            buffer, self._buffer = self._buffer, None
            self._start = self._end = 0
            self._pool.give_back(buffer)

    def _settle_small(self, buffer: memoryview, need: int) -> None:
        if len(buffer) > SMALL_BYTES:
            self._move_to(self._pool.small())
        elif self._start + need > SMALL_BYTES or self._end == SMALL_BYTES:
            self._move_to_front()
        self._room_end = SMALL_BYTES

    def _settle_large(self, buffer: memoryview, have: int, need: int) -> bool:
        if self._start:
            # A new frame begins: what was held for the one before it is held for this one from now on.
            self._move_to_front()
            self.held_since_ms = self._now_ms()
        if have == len(buffer):
            wanted = need + _BEYOND_BYTES
            larger = self._pool.large(wanted, _next_size(have, wanted), instead_of=buffer, proven=need <= self._largest)
            if larger is None:
                return False
            self._move_to(larger)
            self.held_since_ms = self._now_ms()
            buffer = larger
        self._room_end = min(len(buffer), self._start + need + _BEYOND_BYTES)
        return True

    def _move_to(self, target: memoryview) -> None:
        assert self._buffer is not None
        source, self._buffer = self._buffer, target
        have = self._end - self._start
        target[:have] = source[self._start : self._end]
        self._start, self._end = 0, have
        self._pool.give_back(source)

    def _move_to_front(self) -> None:
        assert self._buffer is not None
        have = self._end - self._start
        self._buffer[:have] = self._buffer[self._start : self._end]
        self._start, self._end = 0, have

    def _complaint(self, length: int) -> str:
        if length < 0:
            return f"the request's length is negative ({length}); is this a Kafka client?"
        if length < _SHORTEST_FRAME:
            return f"a request of {length} bytes cannot hold a request header"
        return f"a request of {length} bytes is larger than socket.request.max.bytes={self.frame_bytes_max}"


def _next_size(size: int, wanted: int) -> int:
    """How large the buffer after a full one of `size` bytes should be, for a frame that needs `wanted` in the end."""
    quick = size * _QUICK_GROWTH
    if quick <= _QUICK_GROWTH_BYTES:
        return wanted if wanted <= 2 * quick else quick
    return min(wanted, size * _GROWTH)
