# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, untyped-decorator, import-untyped, import-not-found, attr-defined, has-type"
# mypy: disable-error-code="no-any-return, no-redef, assignment"
# ruff: noqa: SIM108  (a conditional expression would be compiled with what is only for the interpreter)
"""Loops over the records of a log that is being cleaned: which of them are retained.

If a C compiler is available at installation, Cython compiles this file; otherwise it is interpreted, with the same
results. When compiled, no loop over records holds the GIL.

The loops handle plain batches, one after the other. Compressed, transactional and control batches are left to the
caller. Each batch is checked against its CRC first, so that a rewritten batch never gets a valid CRC for damaged bytes.
"""

from __future__ import annotations

import cython

from quire.storage.cleaning import stops

if cython.compiled:
    from cython.cimports.quire.storage.cleaning.bytes_native import (
        copy,
        crc,
        int32,
        int64,
        make_way,
        number,
        number_size,
        put_int,
        put_number,
        uint32,
    )
    from cython.cimports.quire.storage.cleaning.key_table_native import KeyTable, find, look_ahead
else:
    from quire.storage.cleaning.bytes_native import (
        copy,
        crc,
        int32,
        int64,
        make_way,
        number,
        number_size,
        put_int,
        put_number,
        uint32,
    )
    from quire.storage.cleaning.key_table_native import KeyTable, find, look_ahead

_HEADER = cython.declare(cython.Py_ssize_t, 61)
_CODEC_AND_KIND = cython.declare(cython.int, 0x07 | 0x10 | 0x20)
_HORIZON_BIT = cython.declare(cython.int, 0x40)
_RECORD_MIN = cython.declare(cython.Py_ssize_t, 7)
_RECORD_GROWTH = cython.declare(cython.Py_ssize_t, 16)
_LOWEST = cython.declare(cython.longlong, -0x7FFFFFFFFFFFFFFF)

_END = cython.declare(cython.int, stops.END)
_SPECIAL = cython.declare(cython.int, stops.SPECIAL)
_FULL = cython.declare(cython.int, stops.FULL)
_DAMAGED = cython.declare(cython.int, stops.DAMAGED)

COMPILED: bool = cython.compiled


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.Py_ssize_t, cython.longlong, cython.bint, cython.longlong))
def _retain(
    table: KeyTable,
    data: cython.pointer(cython.const[cython.uchar]),
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    base_offset: cython.longlong,
    latest_offset: cython.longlong,
    drop_tombstones: cython.bint,
    rebase: cython.bint,
    shift: cython.longlong,
    out: cython.pointer(cython.uchar),
    out_position: cython.Py_ssize_t,
) -> tuple[int, int, bool, int]:
    """Position after the output (-1: damaged), number of records, whether tombstones, highest timestamp delta."""
    size: cython.longlong
    offset_delta: cython.longlong
    offset: cython.longlong
    timestamp_delta: cython.longlong
    latest_delta: cython.longlong = _LOWEST
    kept: cython.longlong = 0
    tombstones: cython.bint = False
    keep: cython.bint
    is_tombstone: cython.bint
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    body: cython.Py_ssize_t
    deltas: cython.Py_ssize_t
    run: cython.Py_ssize_t = position
    ahead: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t = 0
    since: cython.Py_ssize_t = position
    while count > 0:
        if index == ahead:
            since = make_way(since, position)
            index = 0
            ahead = look_ahead(table, data, position, end, count)
            if ahead == 0:
                return -1, 0, False, 0
        start = position
        size, position = number(data, position, end)
        if position < 0 or size < 1 or size > end - position:
            return -1, 0, False, 0
        body = position
        stop = position + size
        timestamp_delta, position = number(data, position + 1, stop)
        if position < 0:
            return -1, 0, False, 0
        deltas = position
        offset_delta, position = number(data, position, stop)
        if position < 0:
            return -1, 0, False, 0
        size, position = number(data, position, stop)
        if position < 0 or size > stop - position:
            return -1, 0, False, 0
        offset = base_offset + offset_delta
        is_tombstone = False
        if offset > latest_offset:
            # The offset map ends there: later records are retained for the next run.
            keep = True
        elif size < 0:
            keep = False
        else:
            keep = offset >= find(table, index)
        if keep:
            if size > 0:
                position += size
            size, position = number(data, position, stop)
            if position < 0 or size > stop - position:
                return -1, 0, False, 0
            is_tombstone = size < 0
            if is_tombstone and drop_tombstones and offset <= latest_offset:
                keep = False
        if keep:
            kept += 1
            tombstones = tombstones or is_tombstone
            if timestamp_delta > latest_delta:
                latest_delta = timestamp_delta
            if rebase:
                timestamp_delta -= shift
                out_position = put_number(out, out_position, 1 + number_size(timestamp_delta) + stop - deltas)
                out[out_position] = data[body]
                out_position = put_number(out, out_position + 1, timestamp_delta)
                copy(out, out_position, data, deltas, stop - deltas)
                out_position += stop - deltas
        elif not rebase:
            copy(out, out_position, data, run, start - run)
            out_position += start - run
            run = stop
        position = stop
        count -= 1
        index += 1
    if position != end:
        return -1, 0, False, 0
    if not rebase:
        copy(out, out_position, data, run, end - run)
        out_position += end - run
    return out_position, kept, tombstones, latest_delta


def retain_records(
    table: KeyTable,
    section: cython.const[cython.uchar][::1],
    count: int,
    base_offset: int,
    latest_offset: int,
    drop_tombstones: bool,
    shift: int | None,
    out: cython.uchar[::1],
) -> tuple[int, int, bool, int]:
    """Writes the retained records of one (uncompressed) section to `out`, with timestamp deltas reduced by `shift`.

    `out` has room for the section, and with a shift for 16 bytes more for each record. Returns the number of bytes
    written (-1: the section is damaged), the number of records, whether there are tombstones among them, and their
    highest timestamp delta before the shift.
    """
    written: cython.Py_ssize_t
    kept: cython.longlong
    tombstones: cython.bint
    latest_delta: cython.longlong
    records: cython.longlong = count
    base: cython.longlong = base_offset
    latest: cython.longlong = latest_offset
    drop: cython.bint = drop_tombstones
    rebase: cython.bint = shift is not None
    by: cython.longlong = shift or 0
    size: cython.Py_ssize_t = len(section)
    data: cython.pointer(cython.const[cython.uchar])
    target: cython.pointer(cython.uchar)
    if cython.compiled:
        data = cython.address(section[0])
        target = cython.address(out[0])
    else:
        data = section
        target = out
    with cython.nogil:
        written, kept, tombstones, latest_delta = _retain(
            table, data, 0, size, records, base, latest, drop, rebase, by, target, 0
        )
    return written, kept, bool(tombstones), latest_delta


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _contains(
    offsets: cython.pointer(cython.const[cython.longlong]), count: cython.Py_ssize_t, offset: cython.longlong
) -> cython.bint:
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = count
    middle: cython.Py_ssize_t
    while low < high:
        middle = (low + high) // 2
        if offsets[middle] < offset:
            low = middle + 1
        else:
            high = middle
    return low < count and offsets[low] == offset


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.int, cython.Py_ssize_t, cython.Py_ssize_t, cython.longlong))
def _filter_batches(
    table: KeyTable,
    data: cython.pointer(cython.const[cython.uchar]),
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    latest_offset: cython.longlong,
    now_ms: cython.longlong,
    new_horizon_ms: cython.longlong,
    stay_if_empty: cython.pointer(cython.const[cython.longlong]),
    stay_count: cython.Py_ssize_t,
    out: cython.pointer(cython.uchar),
    room: cython.Py_ssize_t,
    out_position: cython.Py_ssize_t,
) -> tuple[int, int, int, int]:
    size: cython.longlong
    count: cython.longlong
    kept: cython.longlong
    kept_total: cython.longlong = 0
    base_offset: cython.longlong
    base_timestamp: cython.longlong
    latest_delta: cython.longlong
    tombstones: cython.bint
    append_time: cython.bint
    attributes: cython.int
    out_end: cython.Py_ssize_t
    since: cython.Py_ssize_t = position
    while end - position >= _HEADER:
        size = int32(data, position + 8) + 12
        if size < _HEADER or data[position + 16] != 2:
            return _DAMAGED, position, out_position, kept_total
        if size > end - position:
            break
        attributes = data[position + 22]
        if attributes & _CODEC_AND_KIND:
            return _SPECIAL, position, out_position, kept_total
        count = int32(data, position + 57)
        if count < 0 or count > (size - _HEADER) // _RECORD_MIN:
            return _DAMAGED, position, out_position, kept_total
        if size + count * _RECORD_GROWTH > room - out_position:
            return _FULL, position, out_position, kept_total
        if crc(data, position + 21, position + size) != uint32(data, position + 17):
            return _DAMAGED, position, out_position, kept_total
        base_offset = int64(data, position)
        base_timestamp = int64(data, position + 27)
        out_end, kept, tombstones, latest_delta = _retain(
            table,
            data,
            position + _HEADER,
            position + size,
            count,
            base_offset,
            latest_offset,
            (attributes & _HORIZON_BIT) != 0 and base_timestamp <= now_ms,
            False,
            0,
            out,
            out_position + _HEADER,
        )
        if out_end < 0:
            return _DAMAGED, position, out_position, kept_total
        if kept == count and count > 0 and (not tombstones or attributes & _HORIZON_BIT):
            copy(out, out_position, data, position, _HEADER)
            out_position = out_end
        elif kept > 0:
            append_time = (attributes & 0x08) != 0
            copy(out, out_position, data, position, _HEADER)
            if tombstones and not attributes & _HORIZON_BIT:
                attributes |= _HORIZON_BIT
                out_end, kept, tombstones, latest_delta = _retain(
                    table,
                    data,
                    position + _HEADER,
                    position + size,
                    count,
                    base_offset,
                    latest_offset,
                    False,
                    True,
                    new_horizon_ms - base_timestamp,
                    out,
                    out_position + _HEADER,
                )
                put_int(out, out_position + 27, 8, new_horizon_ms)
            put_int(out, out_position + 8, 4, out_end - out_position - 12)
            out[out_position + 22] = attributes
            if not append_time:
                put_int(out, out_position + 35, 8, base_timestamp + latest_delta)
            put_int(out, out_position + 57, 4, kept)
            put_int(out, out_position + 17, 4, crc(out, out_position + 21, out_end))
            out_position = out_end
        elif _contains(stay_if_empty, stay_count, base_offset + int32(data, position + 23)):
            copy(out, out_position, data, position, _HEADER)
            put_int(out, out_position + 8, 4, _HEADER - 12)
            out[out_position + 22] = attributes & ~_HORIZON_BIT
            put_int(out, out_position + 27, 8, -1)
            put_int(out, out_position + 57, 4, 0)
            put_int(out, out_position + 17, 4, crc(out, out_position + 21, out_position + _HEADER))
            out_position += _HEADER
        kept_total += kept
        position += size
        since = make_way(since, position)
    return _END, position, out_position, kept_total


def filter_batches(
    table: KeyTable,
    buffer: cython.const[cython.uchar][::1],
    position: int,
    end: int,
    latest_offset: int,
    now_ms: int,
    new_horizon_ms: int,
    stay_if_empty: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
    out_position: int,
) -> tuple[int, int, int, int]:
    """Filters the batches from `position` up to `end` of a buffer into `out`, from `out_position` on.

    A record up to `latest_offset` is retained if it has a key and the table has no later offset for it. Tombstones are
    removed when `now_ms` has reached the delete horizon of their batch; a batch with tombstones that has no horizon yet
    gets `new_horizon_ms`. A batch without retained records is kept, empty, if its last offset is in `stay_if_empty`
    (sorted). Returns why it stopped, at which batch, the position after the output, and how many records are retained.
    """
    status: cython.int
    at: cython.Py_ssize_t = position
    stop: cython.Py_ssize_t = end
    latest: cython.longlong = latest_offset
    now: cython.longlong = now_ms
    horizon: cython.longlong = new_horizon_ms
    written: cython.Py_ssize_t = out_position
    kept: cython.longlong
    room: cython.Py_ssize_t = len(out)
    stay_count: cython.Py_ssize_t = len(stay_if_empty)
    data: cython.pointer(cython.const[cython.uchar])
    stay: cython.pointer(cython.const[cython.longlong])
    target: cython.pointer(cython.uchar)
    if cython.compiled:
        data = cython.address(buffer[0])
        stay = cython.address(stay_if_empty[0])
        target = cython.address(out[0])
    else:
        data = buffer
        stay = stay_if_empty
        target = out
    with cython.nogil:
        status, at, written, kept = _filter_batches(
            table, data, at, stop, latest, now, horizon, stay, stay_count, target, room, written
        )
    return status, at, written, kept


def index_batches(
    buffer: cython.const[cython.uchar][::1],
    end: int,
    file_position: int,
    interval: int,
    unindexed: int,
    max_timestamp: int,
    max_timestamp_offset: int,
) -> tuple[list[tuple[int, int, int, int]], int, int, int]:
    """The index entries for whole batches that are written at `file_position`, as `Segment.append` makes them.

    An entry is the last offset and position of a batch, and the highest timestamp up to it with its offset. The last
    three arguments are what the previous call returned after its entries.
    """
    entries: list[tuple[int, int, int, int]] = []
    data: cython.pointer(cython.const[cython.uchar])
    if cython.compiled:
        data = cython.address(buffer[0])
    else:
        data = buffer
    at: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t = end
    start: cython.longlong = file_position
    since: cython.longlong = unindexed
    every: cython.longlong = interval
    timestamp: cython.longlong
    highest: cython.longlong = max_timestamp
    highest_offset: cython.longlong = max_timestamp_offset
    last_offset: cython.longlong
    size: cython.longlong
    while at < stop:
        size = int32(data, at + 8) + 12
        last_offset = int64(data, at) + int32(data, at + 23)
        timestamp = int64(data, at + 35)
        if timestamp > highest and int32(data, at + 57) > 0:
            highest = timestamp
            highest_offset = last_offset
        if since > every:
            entries.append((last_offset, start + at, highest, highest_offset))
            since = 0
        since += size
        at += size
    return entries, since, highest, highest_offset
