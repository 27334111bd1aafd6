"""Where decompressed records go: one buffer, filled up to a limit.

The limit also covers time: a piece (a member, frame or block) counts at least `PIECE_BYTES`, because setting up a codec
takes as long as decompressing so much.

The buffer may be one that the caller uses again and again. A new megabyte costs as much as decompressing it, because
the system has to provide and clear its pages.
"""

from __future__ import annotations

from quire.protocol.errors import ErrorCode
from quire.protocol.records.invalid import InvalidRecords
from quire.seams.disk import Buffer

PIECE_BYTES = 2048
"""Writers end a piece after tens of kilobytes; the smallest that snappy-java can be set to is a kilobyte."""


class Output:
    """The output of one batch: at most `limit` bytes, in pieces that count as at least `PIECE_BYTES`."""

    __slots__ = ("_pieces_left", "data", "limit", "size")

    def __init__(self, limit: int, data: bytearray | None = None) -> None:
        self.limit = limit
        self.data = bytearray() if data is None else data
        """Larger than what is in it; only the first `size` bytes count."""
        self.size = 0
        self._pieces_left = 1 + limit // PIECE_BYTES

    @property
    def cost_bytes(self) -> int:
        """How much of the limit is used, by the bytes or by the number of pieces."""
        pieces = 1 + self.limit // PIECE_BYTES - self._pieces_left
        return max(self.size, (pieces - 1) * PIECE_BYTES)

    @property
    def room_bytes(self) -> int:
        return self.limit - self.size

    def view(self) -> memoryview:
        return memoryview(self.data)[: self.size]

    def taken(self) -> bytearray:
        """The buffer, cut to what is in it."""
        del self.data[self.size :]
        return self.data

    def begin_piece(self) -> None:
        self._pieces_left -= 1
        if self._pieces_left < 0:
            raise too_large(self.limit, f", counting each compressed piece as {PIECE_BYTES}")

    def add(self, decompressed: Buffer) -> None:
        start = self.size
        end = start + len(decompressed)
        if end > self.limit:
            raise too_large(self.limit)
        if end > len(self.data):
            self.reserve(min(max(end, 2 * start), self.limit))
        with memoryview(self.data) as view:
            view[start:end] = decompressed
        self.size = end

    def reserve(self, more_bytes: int) -> None:
        """Makes the buffer so large that as many bytes have room after those that are there."""
        missing = self.size + more_bytes - len(self.data)
        if missing > 0:
            self.data.extend(bytes(missing))

    def grow(self, most_bytes: int) -> None:
        """Doubles the buffer, to at most this size."""
        self.reserve(min(max(2 * len(self.data), PIECE_BYTES), most_bytes) - self.size)

    def room(self, size: int) -> memoryview:
        """The next `size` bytes of the buffer, to be written and then counted with `fill`; at most `room_bytes`."""
        self.reserve(size)
        return memoryview(self.data)[self.size : self.size + size]

    def fill(self, size: int) -> None:
        """Counts what was written into the buffer directly: `size` is the new end of the output."""
        if size > self.limit:
            raise too_large(self.limit)
        self.size = size


def too_large(limit: int, counted: str = "") -> InvalidRecords:
    return InvalidRecords(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The records of a batch take more than {limit} bytes when decompressed{counted}; send smaller batches.",
    )
