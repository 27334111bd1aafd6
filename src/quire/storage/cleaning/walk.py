"""Reading the batches of a segment, one buffer at a time."""

from collections.abc import Callable, Iterator
from contextlib import closing

from quire.protocol.records.batch import HEADER_BYTES, BatchHeader, compute_crc, read_header
from quire.seams import Disk
from quire.storage.cleaning.bytes_native import let_others
from quire.storage.scanning.batch_scan import DamagedBatchError

Take = Callable[[memoryview, int], int]
"""Called with a buffer and the number of bytes in it; handles whole batches from its start and returns their size."""


class Walk:
    """Reads one file after the other into the same buffer, which grows only for a batch that is larger."""

    __slots__ = ("_buffer", "_disk", "path", "position")

    def __init__(self, disk: Disk, buffer_bytes: int) -> None:
        self._disk = disk
        self._buffer = memoryview(bytearray(buffer_bytes))
        self.path = ""
        self.position = 0
        """Where in the file the buffer begins."""

    def through(self, path: str, size: int, take: Take) -> Iterator[int]:
        """Calls `take` until the file is read; yields the number of bytes after each call that took some."""
        self.path, self.position = path, 0
        with closing(self._disk.open(path)) as file:
            while self.position < size:
                left = size - self.position
                filled = file.pread_into(self._buffer[:left], self.position)
                let_others()
                taken = take(self._buffer, filled)
                if taken == 0:
                    self._grow(filled, left)
                else:
                    self.position += taken
                    yield taken

    def checked_header(self, position: int) -> BatchHeader:
        """The header of a whole batch in the buffer; DamagedBatchError if its checksum does not match."""
        header = read_header(self._buffer, position)
        if compute_crc(self._buffer, header) != header.crc:
            raise self.damage(position, "its checksum does not match")
        return header

    def damage(self, position: int, reason: str) -> DamagedBatchError:
        return DamagedBatchError(self.path, self.position + position, reason)

    def _grow(self, filled: int, left: int) -> None:
        """Makes the buffer large enough for the batch that it does not contain completely."""
        if filled < min(left, len(self._buffer)):
            raise self.damage(0, f"the file is shorter than it was: {filled} bytes of {left} are left")
        batch_bytes = read_header(self._buffer[:filled]).size if filled >= HEADER_BYTES else HEADER_BYTES
        if batch_bytes > left or batch_bytes <= filled:
            raise self.damage(0, f"{left} bytes of a batch of {batch_bytes}")
        self._buffer = memoryview(bytearray(batch_bytes))
