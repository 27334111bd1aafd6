# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, untyped-decorator, import-untyped, import-not-found, unreachable"
"""Decodes records straight into Arrow's buffers, without an object for a record, a key or a value.

There are two passes over the records of a batch: `measure` checks them and returns their size, `fill` copies them into
buffers of that size. `measure` may stop early and returns where to continue, so that the buffers stay small even if a
decompressed batch is large. Records that `measure` has not checked must not be passed to `fill`.

The module is compiled or interpreted, as is `records_native`, which also describes the format. Only `arrow_columns`,
which has the buffers, calls it.
"""

from __future__ import annotations

from typing import Any

import cython

from quire.seams.disk import Buffer

if cython.compiled:
    from cython.cimports.libc.string import memcpy
    from cython.cimports.quire.protocol.records.wire_numbers import sized, varint, varlong
else:
    from quire.protocol.records.wire_numbers import sized, varint, varlong

COMPILED: bool = cython.compiled

OK = 0
MALFORMED = 1
LEFTOVER = 2
WRONG_TIMESTAMP = 3

# The size of a record besides its bytes: offsets into them, numbers, bits.
_ROW_BYTES = cython.declare(cython.longlong, 48)
_HEADER_BYTES = cython.declare(cython.longlong, 12)

# Timestamps become microseconds in 64 bits; the sum of two such numbers of milliseconds fits as well.
_LATEST_MS = cython.declare(cython.longlong, 9_223_372_036_854_775)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.Py_ssize_t, cython.longlong, cython.longlong, cython.longlong))
def _measure_headers(
    data: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[int, int, int, int]:
    """The position after a record's headers (-1: broken), their number, and the bytes of their names and contents."""
    count: cython.longlong
    left: cython.longlong
    size: cython.longlong
    name_bytes: cython.longlong = 0
    content_bytes: cython.longlong = 0
    count, position = varint(data, position, end)
    # A header takes at least two bytes: a count that cannot be true is refused without a loop.
    if position < 0 or count < 0 or count > (end - position) // 2:
        return -1, 0, 0, 0
    left = count
    while left > 0:
        size, position = sized(data, position, end)
        if position < 0 or size < 0:
            return -1, 0, 0, 0
        name_bytes += size
        size, position = sized(data, position + size, end)
        if position < 0:
            return -1, 0, 0, 0
        if size > 0:
            content_bytes += size
            position += size
        left -= 1
    return position, count, name_bytes, content_bytes


def measure(
    source: Buffer,
    position: cython.Py_ssize_t,
    index: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    lowest_delta: cython.longlong,
    end_delta: cython.longlong,
    base_timestamp: cython.longlong,
    has_append_timestamp: cython.bint,
    room: cython.longlong,
) -> tuple[int, int, int, int, int, int, int, int, int]:
    """Checks the records of an uncompressed section from record `index` at `position` on, and sums them up.

    Only records with an offset delta of at least `lowest_delta` and below `end_delta` count. It stops after the last
    of `count` records, or before a record that would exceed `room` bytes, but never before the first that counts.
    `has_append_timestamp` makes `base_timestamp` that of every record (LogAppendTime).
    Returns OK or the error, the position and the index to continue with (of a broken record, its own), the number of
    records that count, the bytes of their keys and values, the number of their headers and the bytes of those.
    """
    data: cython.const[cython.uchar][::1] = source
    end: cython.Py_ssize_t = len(data)
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    size: cython.longlong
    offset_delta: cython.longlong
    timestamp_delta: cython.longlong
    key_size: cython.longlong
    value_size: cython.longlong
    name_bytes: cython.longlong
    content_bytes: cython.longlong
    record_headers: cython.longlong
    rows: cython.longlong = 0
    keys: cython.longlong = 0
    values: cython.longlong = 0
    headers: cython.longlong = 0
    names: cython.longlong = 0
    contents: cython.longlong = 0
    total: cython.longlong = 0
    if base_timestamp > _LATEST_MS or base_timestamp < -_LATEST_MS:
        return WRONG_TIMESTAMP, position, index, 0, 0, 0, 0, 0, 0
    while index < count:
        start = position
        size, position = sized(data, position, end)
        if position < 0 or size < 1:
            return MALFORMED, start, index, 0, 0, 0, 0, 0, 0
        stop = position + size
        timestamp_delta, position = varlong(data, position + 1, stop)
        if position < 0:
            return MALFORMED, start, index, 0, 0, 0, 0, 0, 0
        offset_delta, position = varint(data, position, stop)
        if position < 0:
            return MALFORMED, start, index, 0, 0, 0, 0, 0, 0
        key_size, position = sized(data, position, stop)
        if position < 0:
            return MALFORMED, start, index, 0, 0, 0, 0, 0, 0
        if key_size > 0:
            position += key_size
        value_size, position = sized(data, position, stop)
        if position < 0:
            return MALFORMED, start, index, 0, 0, 0, 0, 0, 0
        if value_size > 0:
            position += value_size
        position, record_headers, name_bytes, content_bytes = _measure_headers(data, position, stop)
        if position != stop:
            return MALFORMED, start, index, 0, 0, 0, 0, 0, 0
        if offset_delta >= lowest_delta and offset_delta < end_delta:
            if not has_append_timestamp and (
                timestamp_delta > _LATEST_MS - base_timestamp or timestamp_delta < -_LATEST_MS - base_timestamp
            ):
                return WRONG_TIMESTAMP, start, index, 0, 0, 0, 0, 0, 0
            total += size + _ROW_BYTES + record_headers * _HEADER_BYTES
            if rows and total > room:
                return OK, start, index, rows, keys, values, headers, names, contents
            rows += 1
            if key_size > 0:
                keys += key_size
            if value_size > 0:
                values += value_size
            headers += record_headers
            names += name_bytes
            contents += content_bytes
        index += 1
    if position != end:
        return LEFTOVER, position, index, 0, 0, 0, 0, 0, 0
    return OK, position, index, rows, keys, values, headers, names, contents


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.void:
    if size > 0:
        if cython.compiled:
            memcpy(cython.address(out[at]), cython.address(data[position]), size)
        else:
            out[at : at + size] = data[position : position + size]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _fill_headers(
    name_ends: cython.int[::1],
    name_data: cython.uchar[::1],
    content_ends: cython.int[::1],
    content_data: cython.uchar[::1],
    content_bits: cython.uchar[::1],
    at: cython.int,
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
) -> cython.int:
    """Copies a record's headers after the first `at` and returns how many there are then."""
    name_at: cython.int = name_ends[at]
    content_at: cython.int = content_ends[at]
    count: cython.longlong
    size: cython.longlong
    count, position = varint(data, position, end)
    while count > 0:
        size, position = sized(data, position, end)
        _copy(name_data, name_at, data, position, size)
        name_at += cython.cast(cython.int, size)
        size, position = sized(data, position + size, end)
        if size >= 0:
            _copy(content_data, content_at, data, position, size)
            content_bits[at >> 3] |= 1 << (at & 7)
            content_at += cython.cast(cython.int, size)
            position += size
        at += 1
        name_ends[at] = name_at
        content_ends[at] = content_at
        count -= 1
    return at


def fill(
    columns: Any,
    source: Buffer,
    position: cython.Py_ssize_t,
    index: cython.Py_ssize_t,
    stop_index: cython.Py_ssize_t,
    lowest_delta: cython.longlong,
    end_delta: cython.longlong,
    base_offset: cython.longlong,
    base_timestamp: cython.longlong,
    has_append_timestamp: cython.bint,
) -> None:
    """Appends what `measure` has counted from record `index` up to `stop_index` to `columns`."""
    data: cython.const[cython.uchar][::1] = source
    end: cython.Py_ssize_t = len(data)
    offsets: cython.longlong[::1] = columns.offsets
    timestamps: cython.longlong[::1] = columns.timestamps_us
    key_ends: cython.int[::1] = columns.key_ends
    key_data: cython.uchar[::1] = columns.key_data
    key_bits: cython.uchar[::1] = columns.key_bits
    value_ends: cython.int[::1] = columns.value_ends
    value_data: cython.uchar[::1] = columns.value_data
    value_bits: cython.uchar[::1] = columns.value_bits
    with_headers: cython.bint = columns.with_headers
    header_ends: cython.int[::1] = columns.header_ends
    header_bits: cython.uchar[::1] = columns.header_bits
    name_ends: cython.int[::1] = columns.name_ends
    name_data: cython.uchar[::1] = columns.name_data
    content_ends: cython.int[::1] = columns.content_ends
    content_data: cython.uchar[::1] = columns.content_data
    content_bits: cython.uchar[::1] = columns.content_bits
    row: cython.Py_ssize_t = columns.row
    key_at: cython.Py_ssize_t = key_ends[row]
    value_at: cython.Py_ssize_t = value_ends[row]
    stop: cython.Py_ssize_t
    size: cython.longlong
    offset_delta: cython.longlong
    timestamp_delta: cython.longlong
    while index < stop_index:
        size, position = sized(data, position, end)
        stop = position + size
        timestamp_delta, position = varlong(data, position + 1, stop)
        offset_delta, position = varint(data, position, stop)
        if offset_delta >= lowest_delta and offset_delta < end_delta:
            offsets[row] = base_offset + offset_delta
            if has_append_timestamp:
                timestamps[row] = base_timestamp * 1000
            else:
                timestamps[row] = (base_timestamp + timestamp_delta) * 1000
            size, position = sized(data, position, stop)
            if size >= 0:
                _copy(key_data, key_at, data, position, size)
                key_bits[row >> 3] |= 1 << (row & 7)
                key_at += size
                position += size
            size, position = sized(data, position, stop)
            if size >= 0:
                _copy(value_data, value_at, data, position, size)
                value_bits[row >> 3] |= 1 << (row & 7)
                value_at += size
                position += size
            if with_headers:
                header_ends[row + 1] = _fill_headers(
                    name_ends,
                    name_data,
                    content_ends,
                    content_data,
                    content_bits,
                    header_ends[row],
                    data,
                    position,
                    stop,
                )
                if header_ends[row + 1] > header_ends[row]:
                    header_bits[row >> 3] |= 1 << (row & 7)
            row += 1
            key_ends[row] = key_at
            value_ends[row] = value_at
        position = stop
        index += 1
    columns.row = row


def fill_steps(out: cython.int[::1], step: cython.int) -> None:
    """0, step, 2 * step and so on: the offsets of a column that is the same in every row."""
    index: cython.Py_ssize_t
    for index in range(len(out)):
        out[index] = cython.cast(cython.int, index) * step
