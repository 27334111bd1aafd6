"""How much one request may expand to when its batches are decompressed.

A batch of a few kilobytes can expand to gigabytes. Real batches are smaller than `FREE_BYTES` or compressed by less
than `MAX_RATIO`; beyond both, or beyond what is left for the request, a batch is refused before it is expanded further.

The event loop can afford much less than that. An `Expansion` for the event loop has `at_once_bytes`, and raises
`TakesLongError` when these are used up: the rest of the work belongs in a job.
"""

from quire.protocol.errors import ErrorCode
from quire.protocol.records.compression import MAX_DECOMPRESSED_BYTES, Compression, decompress_to
from quire.protocol.records.invalid import InvalidRecords
from quire.protocol.records.output import Output
from quire.seams.disk import Buffer

FREE_BYTES = 16 * 1024 * 1024
MAX_RATIO = 100

NO_LIMIT = 1 << 62


class TakesLongError(Exception):
    """The work takes longer than the event loop may be blocked."""


class Expansion:
    """The allowance of one request; every batch uses what it expands to, also if it is refused."""

    __slots__ = ("at_once_bytes", "left_bytes")

    def __init__(self, limit_bytes: int = MAX_DECOMPRESSED_BYTES, at_once_bytes: int = NO_LIMIT) -> None:
        self.left_bytes = limit_bytes
        self.at_once_bytes = at_once_bytes

    def decompress(self, codec: Compression, data: Buffer, scratch: bytearray | None = None) -> memoryview:
        """Decompresses with a codec other than NONE. A TakesLongError does not change the allowance.

        With `scratch`, the result is a view of it, which is made larger if necessary.
        """
        allowed = min(self.left_bytes, max(FREE_BYTES, MAX_RATIO * len(data)))
        output = Output(min(allowed, self.at_once_bytes), scratch)
        try:
            decompress_to(output, codec, data)
        except InvalidRecords as error:
            if error.code is ErrorCode.MESSAGE_TOO_LARGE and output.limit < allowed:
                raise TakesLongError from None
            self.left_bytes -= allowed
            raise
        self.left_bytes -= output.cost_bytes
        self.at_once_bytes -= output.cost_bytes
        return output.view()

    def take_at_once(self, cost_bytes: int) -> None:
        """Counts other work that takes as long as decompressing this size; TakesLongError if that is too long."""
        if cost_bytes > self.at_once_bytes:
            raise TakesLongError
        self.at_once_bytes -= cost_bytes
