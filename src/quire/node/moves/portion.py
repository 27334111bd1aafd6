"""A portion of the original, as a job reads it: whole batches, checked, in pieces that one append takes."""

from typing import NamedTuple

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import BatchHeader, check_crc, walk_batches
from quire.seams import FileSlice
from quire.storage.producers.producer_state import ProducerState

PIECE_BATCHES = 500
"""How many batches are appended in one turn of the event loop: about a millisecond."""


class Piece(NamedTuple):
    records: memoryview
    headers: list[BatchHeader]


class Portion(NamedTuple):
    pieces: list[Piece]
    producers: ProducerState | None = None
    """Those before the first batch of the original, with the first portion."""


def read_portion(part: FileSlice, end_offset: int, segment_bytes: int) -> list[Piece]:
    """The batches of `part` from `end_offset` on, where the copy ends. Runs in a job.

    CORRUPT_MESSAGE if a batch is damaged, or does not belong there.
    """
    records = memoryview(part.read())
    pieces: list[Piece] = []
    headers: list[BatchHeader] = []
    start, offset = 0, end_offset

    def complete() -> None:
        if headers:
            end = headers[-1].end
            for header in headers:
                header.position -= start
            pieces.append(Piece(records[start:end], headers))

    for header in walk_batches(records):
        # The first batch may begin before the end of an empty copy: the log starts in the middle of it.
        if header.last_offset < offset or (header.base_offset < offset and offset != end_offset):
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"{part.file.path} has {header.base_offset} after {offset - 1}")
        check_crc(records, header)
        offset = header.next_offset
        if headers and (len(headers) == PIECE_BATCHES or header.end - start > segment_bytes):
            end = headers[-1].end
            complete()
            start, headers = end, []
        headers.append(header)
    complete()
    return pieces
