"""How much one request may expand to when its batches are decompressed.

A batch of a few kilobytes can stand for gigabytes. Real batches are smaller than `FREE_BYTES` or compressed by less
than `MAX_RATIO`; beyond both, or beyond what is left for the request, a batch is refused before it is expanded further.
"""

from quire.protocol.records.compression import MAX_DECOMPRESSED_BYTES, Compression, decompress
from quire.seams.disk import Buffer

FREE_BYTES = 16 * 1024 * 1024
MAX_RATIO = 100


class Expansion:
    """The room of one request; every batch takes of it what it expands to, also when that was too much."""

    __slots__ = ("left_bytes",)

    def __init__(self, limit_bytes: int = MAX_DECOMPRESSED_BYTES) -> None:
        self.left_bytes = limit_bytes

    def decompress(self, codec: Compression, data: Buffer) -> Buffer:
        limit = min(self.left_bytes, max(FREE_BYTES, MAX_RATIO * len(data)))
        self.left_bytes -= limit
        section = decompress(codec, data, limit)
        self.left_bytes += limit - len(section)
        return section
