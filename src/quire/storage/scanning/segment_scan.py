"""Reading every byte of a segment, or of a part of it, and comparing checksums.

`BatchWalk` handles regular batches, in native code. This module reads the bytes for it and examines each batch at which
it stops: the batch may be damaged, the first of a new leader, after a gap, or a transaction marker. A length in damaged
bytes never makes this read or allocate beyond the file.
"""

from typing import Protocol

from quire.protocol.records.batch import HEADER_BYTES, LENGTH_END, BatchHeader, read_header
from quire.seams import File
from quire.storage.indexes.offset_index import MAX_RELATIVE_OFFSET
from quire.storage.producers.end_marker import EndMarker, is_end_marker, read_end_marker
from quire.storage.scanning import batch_scan
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.batch_walk_native import BatchWalk

_CHUNK = 256 * 1024
"""Small enough to stay in the processor's cache between being read and being checked."""


class Visitor(Protocol):
    """Called for batches that the caller of `scan` has to know about."""

    def visit(self, header: BatchHeader, position: int, expected_offset: int) -> str | None:
        """An intact batch that is not a plain continuation: None if it may come here, else why it may not.

        `expected_offset` is where the batch before it ended.
        """
        ...

    def visit_producer(self, header: BatchHeader) -> None:
        """A producer's batch of records. Of many in a row, only the first and the last few are passed on."""
        ...

    def visit_marker(self, header: BatchHeader, marker: EndMarker) -> None: ...


class RecoveryVisitor(Visitor, Protocol):
    """Also decides whether a scan continues after damage."""

    def skip_damaged(self, damage: DamagedBatchError) -> int | None:
        """The position at which to continue; None if the segment ends at the damage."""
        ...


def scan(file: File, position: int, end: int, walk: BatchWalk, visitor: Visitor, *, enough: int | None = None) -> int:
    """Scans from `position`, where a batch must begin, to `end` of the file; DamagedBatchError if a batch is damaged.

    Returns where it stopped: at the end, or at the end of the first batch that reaches `enough`.
    """
    try:
        return _scan(file, position, end, walk, visitor, end if enough is None else enough)
    finally:
        _pass_on_producers(walk, visitor)


def _scan(file: File, position: int, end: int, walk: BatchWalk, visitor: Visitor, enough: int) -> int:
    buffer = memoryview(bytearray(min(_CHUNK, end - position)))
    at = filled = 0
    while position < enough:
        # Not beyond `enough`, although the buffer may contain more: the caller may need the batch right before it.
        stop = walk.regular(buffer[: min(filled, at + enough - position)], at, position - at)
        position += stop - at
        at = stop
        if position >= enough:
            break
        needed = min(_size_at(buffer, at) if filled - at >= HEADER_BYTES else HEADER_BYTES, end - position)
        if filled - at < needed:
            if needed > len(buffer):
                buffer = memoryview(bytearray(needed))
            filled, at = file.pread_into(buffer[: end - position], position), 0
            if filled < needed:
                raise DamagedBatchError(file.path, position, "the file is shorter than it was")
        else:
            header = batch_scan.checked_header(file, buffer[:filled], at, position, end)
            _visit(file, buffer, header, position, walk, visitor)
            walk.take(position, header.size, header.last_offset, header.max_timestamp, header.record_count)
            position += header.size
            at += header.size
    return position


def _size_at(buffer: memoryview, at: int) -> int:
    return int.from_bytes(buffer[at + 8 : at + LENGTH_END], "big", signed=True) + LENGTH_END


def _pass_on_producers(walk: BatchWalk, visitor: Visitor) -> None:
    for headers in walk.producers.values():
        for header in headers:
            visitor.visit_producer(read_header(header))
    walk.producers.clear()


def _visit(
    file: File, buffer: memoryview, header: BatchHeader, position: int, walk: BatchWalk, visitor: Visitor
) -> None:
    _pass_on_producers(walk, visitor)
    refused: str | None
    if not 0 <= header.last_offset - walk.base_offset <= MAX_RELATIVE_OFFSET:
        refused = f"offset {header.last_offset} does not belong here"
    elif header.next_offset > walk.end_limit:
        refused = f"offset {header.last_offset} belongs to the next segment"
    else:
        refused = visitor.visit(header, position, walk.next_offset)
    if refused is not None:
        raise DamagedBatchError(file.path, position, refused)
    walk.leader_epoch = max(walk.leader_epoch, header.leader_epoch)
    if is_end_marker(header):
        marker = read_end_marker(buffer, header)
        if marker is not None:
            visitor.visit_marker(header, marker)
    elif header.producer_id >= 0:
        visitor.visit_producer(header)
