"""Record batches as columns of an Arrow table: keys, values, offsets, timestamps and headers, in Arrow's own layout.

`ArrowGatherer` takes batches one by one and hands out `ArrowColumns` of about a given number of bytes: several small
batches become one, a large one becomes several. So the memory in use depends on that number and on the largest batch,
never on how much there is to read. This module does not need Arrow: a caller with pyarrow wraps the buffers without
copying them.

Offsets into bytes are 32 bits wide, which is enough for 2 GB; a batch has at most `MAX_DECOMPRESSED_BYTES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from quire.protocol.records.arrow_native import LEFTOVER, OK, WRONG_TIMESTAMP, fill, measure
from quire.protocol.records.batch import LOG_APPEND_TIME_BIT, BatchHeader
from quire.protocol.records.compression import MAX_DECOMPRESSED_BYTES
from quire.protocol.records.invalid import InvalidRecords, corrupt
from quire.protocol.records.reader import records_section
from quire.seams.disk import Buffer

COLUMNS_BYTES = 8 * 1024 * 1024
_ROW_BYTES = 48

_INT64_MIN = -(2**63)
_INT64_MAX = 2**63 - 1


class Sizes(NamedTuple):
    """The sizes of records in the different buffers."""

    rows: int = 0
    keys: int = 0
    values: int = 0
    headers: int = 0
    names: int = 0
    contents: int = 0

    def plus(self, other: Sizes) -> Sizes:
        return Sizes(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    @property
    def total_bytes(self) -> int:
        return self.rows * _ROW_BYTES + self.keys + self.values + self.names + self.contents


class _Piece(NamedTuple):
    """Some of the records of a batch, measured."""

    header: BatchHeader
    section: Buffer
    position: int
    first: int
    stop: int
    sizes: Sizes


class ArrowColumns:
    """Buffers in Arrow's layout: ends of variable values as int32 after a 0, validity as bits, numbers as they are.

    `timestamp_types` says how many rows in a row have which type. Of headers there is one list for each row, null where
    a record has none, over the names and contents of all of them; without `with_headers` they stay empty.
    """

    __slots__ = (
        "content_bits",
        "content_data",
        "content_ends",
        "header_bits",
        "header_ends",
        "key_bits",
        "key_data",
        "key_ends",
        "name_data",
        "name_ends",
        "offsets",
        "row",
        "sizes",
        "timestamp_types",
        "timestamps_us",
        "value_bits",
        "value_data",
        "value_ends",
        "with_headers",
    )

    def __init__(self, sizes: Sizes, with_headers: bool) -> None:
        self.sizes = sizes
        self.with_headers = with_headers
        self.row = 0
        self.timestamp_types: list[tuple[int, int]] = []
        self.offsets = _numbers(sizes.rows, "q")
        self.timestamps_us = _numbers(sizes.rows, "q")
        self.key_ends, self.key_data, self.key_bits = _variable(sizes.rows, sizes.keys)
        self.value_ends, self.value_data, self.value_bits = _variable(sizes.rows, sizes.values)
        headers = sizes if with_headers else Sizes()
        self.header_ends = _numbers(headers.rows + 1, "i")
        self.header_bits = _bits(headers.rows)
        self.name_ends, self.name_data, _ = _variable(headers.headers, headers.names)
        self.content_ends, self.content_data, self.content_bits = _variable(headers.headers, headers.contents)


def _numbers(count: int, kind: Literal["i", "q"]) -> memoryview:
    return memoryview(bytearray(count * (8 if kind == "q" else 4))).cast(kind)


def _bits(count: int) -> memoryview:
    return memoryview(bytearray((count + 7) // 8))


def _variable(count: int, size_bytes: int) -> tuple[memoryview, memoryview, memoryview]:
    return _numbers(count + 1, "i"), memoryview(bytearray(size_bytes)), _bits(count)


class ArrowGatherer:
    """Gathers the records from offset `start` up to, not including, `end`."""

    __slots__ = ("_end", "_limit", "_pieces", "_room_bytes", "_sizes", "_start", "_with_headers")

    def __init__(
        self,
        start: int,
        end: int,
        *,
        with_headers: bool = False,
        room_bytes: int = COLUMNS_BYTES,
        limit: int = MAX_DECOMPRESSED_BYTES,
    ) -> None:
        self._start = start
        self._end = end
        self._with_headers = with_headers
        self._room_bytes = room_bytes
        self._limit = limit
        self._pieces: list[_Piece] = []
        self._sizes = Sizes()

    def begin_at(self, offset: int) -> None:
        """Ignores records below `offset` from now on. The caller has flushed what was added."""
        assert not self._pieces
        self._start = max(self._start, offset)

    def add(self, buffer: Buffer, header: BatchHeader) -> Iterator[ArrowColumns]:
        """Adds one batch, which must stay in `buffer` until the next `flush`; yields columns that are full.

        Raises `InvalidRecords` if the batch cannot be decompressed or read. The caller checks the CRC.
        """
        if header.last_offset < self._start or header.base_offset >= self._end:
            return
        try:
            section = records_section(buffer, header, self._limit)
        except InvalidRecords as error:
            raise InvalidRecords(error.code, f"The batch at offset {header.base_offset}: {error.message}") from None
        position = index = 0
        while index < header.record_count:
            piece, position = self._measure(header, section, position, index)
            index = piece.stop
            if piece.sizes.rows:
                self._pieces.append(piece)
                self._sizes = self._sizes.plus(piece.sizes)
            if index < header.record_count or self._sizes.total_bytes >= self._room_bytes:
                yield from self.flush()

    def flush(self) -> Iterator[ArrowColumns]:
        """The remaining records, if there are any."""
        if not self._pieces:
            return
        columns = ArrowColumns(self._sizes, self._with_headers)
        for piece in self._pieces:
            self._fill(columns, piece)
        assert columns.row == self._sizes.rows
        self._pieces, self._sizes = [], Sizes()
        yield columns

    def _deltas(self, header: BatchHeader) -> tuple[int, int]:
        lowest, end = self._start - header.base_offset, self._end - header.base_offset
        return max(lowest, _INT64_MIN), min(end, _INT64_MAX)

    def _measure(self, header: BatchHeader, section: Buffer, position: int, index: int) -> tuple[_Piece, int]:
        lowest, end = self._deltas(header)
        room = max(self._room_bytes - self._sizes.total_bytes, 0)
        status, after, stop, *sizes = measure(
            section, position, index, header.record_count, lowest, end, *_timestamps(header), room
        )
        if status != OK:
            raise _unreadable(header, status, stop, len(section) - after)
        return _Piece(header, section, position, index, stop, Sizes(*sizes)), after

    def _fill(self, columns: ArrowColumns, piece: _Piece) -> None:
        header = piece.header
        lowest, end = self._deltas(header)
        fill(
            columns,
            piece.section,
            piece.position,
            piece.first,
            piece.stop,
            lowest,
            end,
            header.base_offset,
            *_timestamps(header),
        )
        columns.timestamp_types.append((piece.sizes.rows, header.timestamp_type))


def _timestamps(header: BatchHeader) -> tuple[int, bool]:
    """The base of the records' timestamps, and whether it is the timestamp of every record."""
    if header.attributes & LOG_APPEND_TIME_BIT:
        return header.max_timestamp, True
    return header.base_timestamp, False


def _unreadable(header: BatchHeader, status: int, index: int, left_bytes: int) -> InvalidRecords:
    if status == LEFTOVER:
        problem = f"there are {left_bytes} bytes after the last record"
    elif status == WRONG_TIMESTAMP:
        problem = f"the timestamp of record {index} is not one that microseconds in 64 bits can tell"
    else:
        problem = f"record {index} is broken"
    return corrupt(f"The record batch at offset {header.base_offset} cannot be read: {problem}.")
