"""Iterating over the batches of a log file.

`headers` compares no checksums and reads little more than headers: for finding a position or replaying producers.
`checked` reads every byte and compares checksums. Both raise `DamagedBatchError` at the first batch that is not valid.
A length in damaged bytes never makes them read or allocate beyond the file.
"""

from collections.abc import Iterator

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records.batch import HEADER_BYTES, BatchHeader, compute_crc, read_header
from quire.protocol.records.invalid import InvalidRecords
from quire.seams import Buffer, ReadableFile

_HEADERS_CHUNK = 8 * 1024
_CHECKED_CHUNK = 1 << 20


class DamagedBatchError(ApiError):
    """The bytes at `position` of a log file are not a whole, intact batch."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, f"{path} at position {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


def headers(file: ReadableFile, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch from `position`, where a batch must begin, up to `end` of the file."""
    chunk, chunk_start = b"", position
    while position < end:
        at = position - chunk_start
        if at + HEADER_BYTES > len(chunk):
            chunk, chunk_start, at = file.pread(min(_HEADERS_CHUNK, end - position), position), position, 0
        header = _header(file, chunk, at, position, end)
        yield position, header
        position += header.size


def checked(file: ReadableFile, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """As `headers`, but compares the checksum of each batch before it is returned."""
    buffer = memoryview(bytearray(min(_CHECKED_CHUNK, end - position)))
    filled, chunk_start = 0, position
    while position < end:
        at = position - chunk_start
        if at + HEADER_BYTES > filled:
            filled, chunk_start, at = file.pread_into(buffer[: end - position], position), position, 0
        header = _header(file, buffer[:filled], at, position, end)
        if header.end > filled:
            if header.size > len(buffer):
                buffer = memoryview(bytearray(header.size))
            filled, chunk_start, header.position = file.pread_into(buffer[: end - position], position), position, 0
        _check(file, buffer[:filled], header, position)
        yield position, header
        position += header.size


def checked_header(file: ReadableFile, buffer: Buffer, at: int, position: int, end: int) -> BatchHeader:
    """The header of the batch at `at` in the buffer; DamagedBatchError, with `position` in the file, if not intact."""
    header = _header(file, buffer, at, position, end)
    _check(file, buffer, header, position)
    return header


def read_batch(file: ReadableFile, position: int, header: BatchHeader) -> bytes:
    """The bytes of the batch whose header was found at `position` of the file; compares the checksum."""
    batch = file.pread(header.size, position)
    header.position = 0
    _check(file, batch, header, position)
    return batch


def _header(file: ReadableFile, chunk: Buffer, at: int, position: int, end: int) -> BatchHeader:
    try:
        header = read_header(chunk, at)
    except InvalidRecords as error:
        raise DamagedBatchError(file.path, position, error.message) from None
    if position + header.size > end:
        raise DamagedBatchError(file.path, position, f"{end - position} bytes of a batch of {header.size}")
    if header.last_offset_delta < 0 or header.base_offset < 0:
        raise DamagedBatchError(file.path, position, "a negative offset")
    return header


def _check(file: ReadableFile, buffer: Buffer, header: BatchHeader, position: int) -> None:
    if header.end > len(buffer) or compute_crc(buffer, header) != header.crc:
        raise DamagedBatchError(file.path, position, "its checksum does not match")
