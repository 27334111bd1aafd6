# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, untyped-decorator, import-untyped, import-not-found, attr-defined, has-type"
# mypy: disable-error-code="no-any-return, no-redef, assignment"
# ruff: noqa: RUF059, SIM108  (a conditional expression would be compiled whole)
"""Loops over the records of the dirty part, which put the last offset of each key into the offset map.

If a C compiler is available at installation, Cython compiles this file; otherwise it is interpreted, with the same
results. When compiled, no loop holds the GIL. `offset_map_builder` calls it.

The loops handle plain batches, one after the other. Compressed, transactional and control batches are left to the
caller. Each batch is checked against its CRC before its keys are used, because a damaged key could supersede a valid
record.
"""

from __future__ import annotations

import cython

from quire.storage.cleaning import stops

if cython.compiled:
    from cython.cimports.quire.storage.cleaning.bytes_native import crc, int32, int64, make_way, number, uint32
    from cython.cimports.quire.storage.cleaning.key_table_native import KeyTable, look_ahead, put
else:
    from quire.storage.cleaning.bytes_native import crc, int32, int64, make_way, number, uint32
    from quire.storage.cleaning.key_table_native import KeyTable, look_ahead, put

_HEADER = cython.declare(cython.Py_ssize_t, 61)
_CODEC_AND_KIND = cython.declare(cython.int, 0x07 | 0x10 | 0x20)

_END = cython.declare(cython.int, stops.END)
_SPECIAL = cython.declare(cython.int, stops.SPECIAL)
_FULL = cython.declare(cython.int, stops.FULL)
_DAMAGED = cython.declare(cython.int, stops.DAMAGED)

COMPILED: bool = cython.compiled


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.int, cython.longlong))
def _learn(
    table: KeyTable,
    data: cython.pointer(cython.const[cython.uchar]),
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    base_offset: cython.longlong,
    first_offset: cython.longlong,
) -> tuple[int, int]:
    """END, FULL or DAMAGED, and the last offset that was mapped (-1: none)."""
    size: cython.longlong
    last_offset: cython.longlong = -1
    offset_delta: cython.longlong
    timestamp_delta: cython.longlong
    stop: cython.Py_ssize_t
    ahead: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t = 0
    since: cython.Py_ssize_t = position
    while count > 0:
        if index == ahead:
            since = make_way(since, position)
            index = 0
            ahead = look_ahead(table, data, position, end, count)
            if ahead == 0:
                return _DAMAGED, last_offset
        size, position = number(data, position, end)
        if position < 0 or size < 1 or size > end - position:
            return _DAMAGED, last_offset
        stop = position + size
        timestamp_delta, position = number(data, position + 1, stop)
        if position < 0:
            return _DAMAGED, last_offset
        offset_delta, position = number(data, position, stop)
        if position < 0:
            return _DAMAGED, last_offset
        size, position = number(data, position, stop)
        if position < 0 or size > stop - position:
            return _DAMAGED, last_offset
        if base_offset + offset_delta >= first_offset:
            if size >= 0 and not put(table, index, base_offset + offset_delta):
                return _FULL, last_offset
            last_offset = base_offset + offset_delta
        position = stop
        index += 1
        count -= 1
    if position != end:
        return _DAMAGED, last_offset
    return _END, last_offset


def map_records(
    table: KeyTable, section: cython.const[cython.uchar][::1], count: int, base_offset: int, first_offset: int
) -> tuple[int, int]:
    """Puts the keys of the records of one (uncompressed) section into the table, from `first_offset` on.

    Returns END, FULL or DAMAGED, and the last offset that was mapped (-1: none). Records without a key are skipped.
    """
    status: cython.int
    last_offset: cython.longlong
    records: cython.longlong = count
    base: cython.longlong = base_offset
    first: cython.longlong = first_offset
    size: cython.Py_ssize_t = len(section)
    data: cython.pointer(cython.const[cython.uchar])
    if cython.compiled:
        data = cython.address(section[0])
    else:
        data = section
    with cython.nogil:
        status, last_offset = _learn(table, data, 0, size, records, base, first)
    return status, last_offset


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.int, cython.Py_ssize_t, cython.longlong))
def _map_batches(
    table: KeyTable,
    data: cython.pointer(cython.const[cython.uchar]),
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    first_offset: cython.longlong,
) -> tuple[int, int, int]:
    size: cython.longlong
    last_offset: cython.longlong = -1
    learned: cython.longlong
    status: cython.int
    since: cython.Py_ssize_t = position
    while end - position >= _HEADER:
        size = int32(data, position + 8) + 12
        if size < _HEADER or data[position + 16] != 2:
            return _DAMAGED, position, last_offset
        if size > end - position:
            break
        if data[position + 22] & _CODEC_AND_KIND:
            return _SPECIAL, position, last_offset
        if crc(data, position + 21, position + size) != uint32(data, position + 17):
            return _DAMAGED, position, last_offset
        status, learned = _learn(
            table,
            data,
            position + _HEADER,
            position + size,
            int32(data, position + 57),
            int64(data, position),
            first_offset,
        )
        if status != _END:
            return status, position, max(last_offset, learned)
        last_offset = int64(data, position) + int32(data, position + 23)
        position += size
        since = make_way(since, position)
    return _END, position, last_offset


def map_batches(
    table: KeyTable, buffer: cython.const[cython.uchar][::1], position: int, end: int, first_offset: int
) -> tuple[int, int, int]:
    """Puts the keys of the batches from `position` up to `end` of a buffer into the table, from `first_offset` on.

    Returns why it stopped, at which batch, and the offset up to which every key was mapped (-1: none).
    """
    status: cython.int
    at: cython.Py_ssize_t = position
    stop: cython.Py_ssize_t = end
    first: cython.longlong = first_offset
    last_offset: cython.longlong
    data: cython.pointer(cython.const[cython.uchar])
    if cython.compiled:
        data = cython.address(buffer[0])
    else:
        data = buffer
    with cython.nogil:
        status, at, last_offset = _map_batches(table, data, at, stop, first)
    return status, at, last_offset
