# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, untyped-decorator, import-untyped, import-not-found, no-any-return"
"""Encodes columns in Arrow's memory layout as the records of batches, without an object per row.

Cython compiles the module if there is a C compiler at installation; interpreted it gives the same results. It does not
use pyarrow: a column of strings or bytes consists of the end of each value (`offsets`), the bytes of all values
(`data`) and a bitmap of the values that are not null. `protocol.records.records_native` describes the records.

There are three loops, in the order in which a sink runs them: `choose_partitions` is Kafka's default partitioner,
`encode_rows` writes into one `Lane` per partition, and `digest_rows` is a hash that does not depend on the order, by
which a batch of rows is recognised.
"""

from __future__ import annotations

import cython

from quire.client.murmur2_native import murmur2
from quire.seams.disk import Buffer

if cython.compiled:
    from cython.cimports.libc.string import memcpy
    from cython.cimports.quire.client.murmur2_native import murmur2_at

COMPILED: bool = cython.compiled

HEADER_BYTES: int = 61
"""Room in front of a lane's records for the batch's header."""
NO_PARTITION: int = -1

_ROOM = cython.declare(cython.Py_ssize_t, 61)
_FIRST_BYTES = cython.declare(cython.Py_ssize_t, 16384)
_PRIME = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
_LAST_PRIME = cython.declare(cython.ulonglong, 0xBF58476D1CE4E5B9)
_ALL = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


@cython.cclass
class Column:
    """Strings or bytes, each of which may be null; `start` is the row of the buffers that is row 0 here."""

    offsets: cython.const[cython.int][::1]
    data: cython.const[cython.uchar][::1]
    validity: cython.const[cython.uchar][::1]
    start: cython.Py_ssize_t
    nullable: cython.bint

    def __init__(self, offsets: memoryview, data: Buffer, validity: Buffer | None, start: int) -> None:
        self.offsets = offsets
        self.data = data
        self.validity = b"" if validity is None else validity
        self.nullable = validity is not None
        self.start = start

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def size(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Bytes of a value; -1 for null."""
        row += self.start
        if self.nullable and not self.validity[row >> 3] >> (row & 7) & 1:
            return -1
        return self.offsets[row + 1] - self.offsets[row]


@cython.cclass
class Headers:
    """A list of names and values for each row: row i has those from `offsets[start + i]` up to the next."""

    offsets: cython.const[cython.int][::1]
    validity: cython.const[cython.uchar][::1]
    start: cython.Py_ssize_t
    nullable: cython.bint
    names: Column
    values: Column

    def __init__(self, offsets: memoryview, validity: Buffer | None, start: int, names: Column, values: Column) -> None:
        self.offsets = offsets
        self.validity = b"" if validity is None else validity
        self.nullable = validity is not None
        self.start = start
        self.names = names
        self.values = values

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def count(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        row += self.start
        if self.nullable and not self.validity[row >> 3] >> (row & 7) & 1:
            return 0
        return self.offsets[row + 1] - self.offsets[row]

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def first(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        return self.offsets[row + self.start]


@cython.cclass
class Lane:
    """The records of the batch that is being filled for one partition, after the room for its header."""

    data = cython.declare(bytearray, visibility="readonly")
    out: cython.uchar[::1]
    used = cython.declare(cython.Py_ssize_t, visibility="readonly")
    count = cython.declare(cython.Py_ssize_t, visibility="readonly")

    def __init__(self) -> None:
        self._begin()

    def take(self) -> bytearray:
        """The batch with its header still to be written; the lane begins another."""
        taken: bytearray = self.data
        used: cython.Py_ssize_t = self.used
        self._begin()
        del taken[used:]
        return taken

    @cython.cfunc
    def _begin(self) -> cython.void:
        self.data = bytearray()
        self.out = None if cython.compiled else self.data
        self.used = _ROOM
        self.count = 0

    @cython.cfunc
    def _grow(self, needed: cython.Py_ssize_t, most: cython.Py_ssize_t) -> cython.void:
        """Makes room for `needed` bytes in total: twice as much as before, but not more than `most` and `needed`."""
        size: cython.Py_ssize_t = max(2 * len(self.data), _FIRST_BYTES)
        grown: bytearray = bytearray(max(min(size, most), needed))
        if self.count:
            grown[: self.used] = self.data[: self.used]
        self.data = grown
        self.out = grown


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _varint_size(value: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The size of a number that is not negative; -1 takes one byte."""
    size: cython.Py_ssize_t = 1
    while value >= 64:
        value >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_varint(out: cython.uchar[::1], position: cython.Py_ssize_t, value: cython.Py_ssize_t) -> cython.Py_ssize_t:
    raw: cython.ulonglong = 1 if value < 0 else cython.cast(cython.ulonglong, value) * 2
    while raw > 0x7F:
        out[position] = (raw & 0x7F) | 0x80
        raw >>= 7
        position += 1
    out[position] = raw
    return position + 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_sized(
    out: cython.uchar[::1],
    position: cython.Py_ssize_t,
    column: Column,
    row: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    source: cython.Py_ssize_t
    position = _put_varint(out, position, size)
    if size > 0:
        source = column.offsets[row + column.start]
        if cython.compiled:
            memcpy(cython.address(out[position]), cython.address(column.data[source]), size)
        else:
            out[position : position + size] = column.data[source : source + size]
        position += size
    return position


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _sized(size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The size of a value in a record, with its length."""
    return 1 if size < 0 else _varint_size(size) + size


@cython.cfunc
@cython.exceptval(check=False)
def _headers_size(headers: Headers, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
    index: cython.Py_ssize_t = headers.first(row)
    stop: cython.Py_ssize_t = index + headers.count(row)
    size: cython.Py_ssize_t = _varint_size(stop - index)
    while index < stop:
        size += _sized(headers.names.size(index)) + _sized(headers.values.size(index))
        index += 1
    return size


@cython.cfunc
@cython.exceptval(check=False)
def _put_headers(
    out: cython.uchar[::1], position: cython.Py_ssize_t, headers: Headers, row: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    index: cython.Py_ssize_t = headers.first(row)
    stop: cython.Py_ssize_t = index + headers.count(row)
    position = _put_varint(out, position, stop - index)
    while index < stop:
        position = _put_sized(out, position, headers.names, index, headers.names.size(index))
        position = _put_sized(out, position, headers.values, index, headers.values.size(index))
        index += 1
    return position


def encode_rows(
    lanes: list[Lane],
    partitions: memoryview,
    keys: Column | None,
    values: Column,
    headers: Headers | None,
    row: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    sticky: cython.int,
    batch_bytes: cython.Py_ssize_t,
) -> int:
    """Adds the rows from `row` up to `stop` to the lanes of their partitions; `sticky` is for rows without one.

    Returns the first row that was not added: `stop`, or a row whose lane is full; the caller takes that batch first. A
    batch has at most `batch_bytes` before compression, or a single record. All records have the batch's timestamp.
    """
    chosen: cython.const[cython.int][::1] = partitions
    lane: Lane
    partition: cython.int
    position: cython.Py_ssize_t
    body: cython.Py_ssize_t
    size: cython.Py_ssize_t
    key_size: cython.Py_ssize_t = -1
    value_size: cython.Py_ssize_t
    while row < stop:
        partition = chosen[row]
        lane = lanes[sticky if partition < 0 else partition]
        if keys is not None:
            key_size = keys.size(row)
        value_size = values.size(row)
        # Attributes, timestamp delta 0, offset delta, key, value, headers.
        body = 2 + _varint_size(lane.count) + _sized(key_size) + _sized(value_size)
        body += 1 if headers is None else _headers_size(headers, row)
        size = _varint_size(body) + body
        if lane.used + size > batch_bytes and lane.count:
            return row
        if lane.used + size > len(lane.data):
            lane._grow(lane.used + size, batch_bytes)
        position = _put_varint(lane.out, lane.used, body)
        lane.out[position] = 0
        lane.out[position + 1] = 0
        position = _put_varint(lane.out, position + 2, lane.count)
        if keys is None:
            lane.out[position] = 1  # a length of -1: no key
            position += 1
        else:
            position = _put_sized(lane.out, position, keys, row, key_size)
        position = _put_sized(lane.out, position, values, row, value_size)
        if headers is None:
            lane.out[position] = 0
            position += 1
        else:
            position = _put_headers(lane.out, position, headers, row)
        lane.used = position
        lane.count += 1
        row += 1
    return row


def choose_partitions(
    out: memoryview, keys: Column | None, wanted: memoryview | None, wanted_validity: Buffer | None, count: cython.int
) -> int:
    """The partition of each row: the one in `wanted`, or else the one of its key, or else NO_PARTITION.

    `wanted` and its bitmap begin at the first row's number and bit 0. Returns the first row whose `wanted` partition is
    not below `count`, or -1.
    """
    chosen: cython.int[::1] = out
    numbers: cython.const[cython.int][::1] = wanted
    validity: cython.const[cython.uchar][::1] = wanted_validity
    row: cython.Py_ssize_t = 0
    begin: cython.Py_ssize_t
    hashed: cython.uint
    while row < len(chosen):
        if wanted is not None and (wanted_validity is None or validity[row >> 3] >> (row & 7) & 1):
            if numbers[row] < 0 or numbers[row] >= count:
                return row
            chosen[row] = numbers[row]
        elif keys is None or keys.size(row) < 0:
            chosen[row] = -1
        else:
            begin = keys.offsets[row + keys.start]
            if cython.compiled:
                hashed = murmur2_at(cython.address(keys.data[0]), begin, begin + keys.size(row))
            else:
                hashed = murmur2(keys.data[begin : begin + keys.size(row)])
            chosen[row] = (hashed & 0x7FFFFFFF) % count
        row += 1
    return -1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _mix(state: cython.ulonglong, word: cython.ulonglong) -> cython.ulonglong:
    state = ((state ^ word) * _PRIME) & _ALL
    return state ^ (state >> 32)


@cython.cfunc
@cython.exceptval(check=False)
def _mix_value(state: cython.ulonglong, column: Column, row: cython.Py_ssize_t) -> cython.ulonglong:
    size: cython.Py_ssize_t = column.size(row)
    position: cython.Py_ssize_t
    end: cython.Py_ssize_t
    word: cython.ulonglong = 0
    state = _mix(state, size + 2)
    if size <= 0:
        return state
    position = column.offsets[row + column.start]
    end = position + size
    while end - position >= 8:
        if cython.compiled:
            memcpy(cython.address(word), cython.address(column.data[position]), 8)
        else:
            word = int.from_bytes(column.data[position : position + 8], "little")
        state = _mix(state, word)
        position += 8
    if position < end:
        word = 0
        while position < end:
            end -= 1
            word = (word << 8) | column.data[end]
        state = _mix(state, word)
    return state


def digest_rows(
    seed: cython.ulonglong,
    keys: Column | None,
    values: Column,
    headers: Headers | None,
    wanted: memoryview | None,
    wanted_validity: Buffer | None,
    count: cython.Py_ssize_t,
) -> int:
    """The sum, in 64 bits, of the hashes of the first `count` rows, so that their order does not matter.

    A hash covers the whole row: `seed` (the topic), the wanted partition, key, value and headers; null and empty
    differ. It detects accidental differences, but does not protect against an attacker.
    """
    numbers: cython.const[cython.int][::1] = wanted
    validity: cython.const[cython.uchar][::1] = wanted_validity
    total: cython.ulonglong = 0
    state: cython.ulonglong
    row: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    while row < count:
        state = seed
        if wanted is not None and (wanted_validity is None or validity[row >> 3] >> (row & 7) & 1):
            state = _mix(state, numbers[row] + 1)
        state = _mix(state, 1) if keys is None else _mix_value(state, keys, row)
        state = _mix_value(state, values, row)
        if headers is not None:
            index = headers.first(row)
            stop = index + headers.count(row)
            while index < stop:
                state = _mix_value(_mix_value(state, headers.names, index), headers.values, index)
                index += 1
        state = ((state ^ (state >> 29)) * _LAST_PRIME) & _ALL
        total = (total + (state ^ (state >> 32))) & _ALL
        row += 1
    return total
