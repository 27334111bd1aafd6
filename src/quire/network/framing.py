"""Divides the received bytes into requests.

A request on the wire is a signed 32-bit length and that many bytes. `FrameReader` provides the buffer for the next
bytes, and cuts them into frames in place: the frames of one receive are views of one buffer. A frame that does not fit
into a small buffer moves to a large one, and its remaining bytes are received straight into that. The large buffer
grows with what has arrived, not with what was announced: announcing 100 MB and sending nothing costs 16 KB, and beyond
a few megabytes a client never gets more than twice what it has sent. A client that sends one large frame usually sends
another, so the next frame begins in a large buffer if one is available.

    small   |= frame =|= frame =|= begin|                 the next frame is known to be larger than this buffer
    large   |= begin|.................................|   and continues here, up to its end and a little beyond
"""

from collections.abc import Callable
from struct import Struct

from quire.network.buffers import SMALL_BYTES, BufferPool

_LENGTH = Struct(">i").unpack_from
_LENGTH_BYTES = 4
_SHORTEST_FRAME = 8
"""The shortest possible request header: API key, version and correlation id."""
_BEYOND_BYTES = 4096
"""Room after a large frame's end: a receive that does not fill it shows that nothing else has arrived yet."""
_QUICK_GROWTH = 8
"""How much larger each next buffer of a frame is, up to a megabyte: a typical large frame is moved at most twice.

Twice that if the frame then fits, so that its end is not moved."""
_QUICK_GROWTH_BYTES = 1024 * 1024
_GROWTH = 2
"""The same beyond that, where memory matters more than copying."""


class BadFrame(Exception):  # noqa: N818
    """The bytes are not a request; the text says why. The next request cannot be found."""


class FrameReader:
    """Called in this order: `buffer`, `next_frame` until it returns None, `settle`."""

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
        """When the current large buffer was allocated, or the incomplete frame in it began."""
        self._largest = 0
        """The size of the largest frame that has arrived completely, with its length field."""
        self._now_ms = now_ms
        self._pool = pool
        self._small = pool.small_kept
        self._buffer: memoryview | None = None
        self._start = 0
        self._end = 0
        self._room_end = 0
        self._expected = 0
        """The size of the last frame with its length field, if it was large."""

    def buffer(self) -> memoryview:
        """Memory for the next bytes."""
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
        """The next complete frame without its length, valid until `settle`; None if more bytes are needed.

        `received` is how many bytes were received into the last `buffer`.
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
        """Makes `next_frame` return its last frame again."""
        self._start -= _LENGTH_BYTES + len(frame)

    def settle(self) -> bool:
        """Makes room for the rest of the incomplete frame, or releases the buffer if it is empty.

        False if the server's memory for large requests is used up: nothing may be received until a retry succeeds.
        """
        buffer = self._buffer
        if self._start == self._end or buffer is None:
            self.release()
            return True
        have = self._end - self._start
        need = _LENGTH_BYTES
        if have >= _LENGTH_BYTES:
            need += _LENGTH(buffer, self._start)[0]
        assert have < need, "there is a complete frame that next_frame has not returned"
        if need <= SMALL_BYTES:
            self._settle_small(buffer, need)
            return True
        return self._settle_large(buffer, have, need)

    @property
    def incomplete(self) -> bool:
        """Whether there are bytes after the last frame."""
        return self._start < self._end

    @property
    def has_frame(self) -> bool:
        """Whether there is another complete frame."""
        have = self._end - self._start
        if self._buffer is None or have < _LENGTH_BYTES:
            return False
        length: int = _LENGTH(self._buffer, self._start)[0]
        return have >= _LENGTH_BYTES + length

    @property
    def large_bytes(self) -> int:
        """How much of the server's memory the current buffer uses, if it is large."""
        buffer = self._buffer
        return self._pool.held_bytes(buffer) if buffer is not None and len(buffer) > SMALL_BYTES else 0

    @property
    def unread_bytes(self) -> int:
        """How many bytes there are after the last frame."""
        return self._end - self._start

    @property
    def is_full(self) -> bool:
        """Whether the last `buffer` was filled completely, so that more bytes may be available at once."""
        return self._end == self._room_end

    @property
    def wanted_bytes(self) -> int:
        """The size of the buffer for the whole incomplete frame."""
        assert self._buffer is not None
        length: int = _LENGTH(self._buffer, self._start)[0]
        return _LENGTH_BYTES + length + _BEYOND_BYTES

    @property
    def is_proven(self) -> bool:
        """Whether a frame as large as the incomplete one has arrived completely before."""
        return self.wanted_bytes <= self._largest + _BEYOND_BYTES

    def shrink(self) -> None:
        """Releases the buffer if it is empty, and replaces a large one by a small one if that is sufficient."""
        have = self._end - self._start
        if not have:
            self.release()
        elif have < SMALL_BYTES and self.large_bytes:
            self._move_to(self._pool.small())
            self._room_end = SMALL_BYTES

    def release(self) -> None:
        """Returns the buffer to the pool and drops its contents."""
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
            # A new frame begins: from now on the memory is held for this frame.
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
    """The size of the buffer after a full one of `size` bytes, for a frame that needs `wanted` bytes in total."""
    quick = size * _QUICK_GROWTH
    if quick <= _QUICK_GROWTH_BYTES:
        return wanted if wanted <= 2 * quick else quick
    return min(wanted, size * _GROWTH)
