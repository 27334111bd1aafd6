# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, untyped-decorator, import-untyped, import-not-found, attr-defined, has-type"
# ruff: noqa: RUF059
"""The loop over a coordinator's log that keeps the last record of each key; `loader` calls it.

Cython compiles it if there is a C compiler at installation. Otherwise Python runs it, with the same results. The loop
takes plain batches only. It stops at a batch that is compressed, belongs to a transaction, ends one or is incomplete.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.quire.protocol.records.wire_numbers import int32, int64, varlong
else:
    from quire.protocol.records.wire_numbers import int32, int64, varlong

_HEADER = cython.declare(cython.Py_ssize_t, 61)
_CODEC_AND_KIND = cython.declare(cython.int, 0x07 | 0x10 | 0x20)

COMPILED: bool = cython.compiled


def remember_latest(
    latest: dict[bytes, tuple[int, bytes | None]], source: bytes, position: cython.Py_ssize_t, first_offset: int
) -> tuple[int, int]:
    """Stores (offset, value) of the records from `first_offset` on by key, in log order.

    Returns the position where it stopped, and the offset after the last record that it took. Raises ValueError for a
    record that cannot be decoded or has no key; `latest` must not be used after that.
    """
    data: cython.const[cython.uchar][::1] = source
    end: cython.Py_ssize_t = len(source)
    next_offset: cython.longlong = first_offset
    size: cython.longlong
    base_offset: cython.longlong
    while end - position >= _HEADER:
        size = int32(data, position + 8) + 12
        if size < _HEADER or size > end - position or data[position + 16] != 2:
            break
        if data[position + 22] & _CODEC_AND_KIND:
            break
        base_offset = int64(data, position)
        if base_offset + int32(data, position + 23) >= next_offset:
            _remember_batch(latest, source, data, position, position + size, base_offset, next_offset)
            next_offset = base_offset + int32(data, position + 23) + 1
        position += size
    return position, next_offset


@cython.cfunc
@cython.inline
def _remember_batch(
    latest: dict[bytes, tuple[int, bytes | None]],
    source: bytes,
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    base_offset: cython.longlong,
    first_offset: cython.longlong,
) -> cython.int:
    chars: cython.p_char = source
    count: cython.longlong = int32(data, position + 57)
    stop: cython.Py_ssize_t
    size: cython.longlong
    offset_delta: cython.longlong
    timestamp_delta: cython.longlong
    key: bytes
    position += _HEADER
    while count > 0:
        size, position = varlong(data, position, end)
        if position < 0 or size < 1 or size > end - position:
            raise ValueError("a record has an impossible length")
        stop = position + size
        timestamp_delta, position = varlong(data, position + 1, stop)
        if position < 0:
            raise ValueError("a record has no readable timestamp")
        offset_delta, position = varlong(data, position, stop)
        if position < 0:
            raise ValueError("a record has no readable offset")
        size, position = varlong(data, position, stop)
        if position < 0 or size < 0 or size > stop - position:
            raise ValueError("a record has no readable key")
        key = chars[position : position + size]
        size, position = varlong(data, position + size, stop)
        if position < 0 or size > stop - position:
            raise ValueError("a record has no readable value")
        value: bytes | None = None
        if size >= 0:
            value = chars[position : position + size]
        if base_offset + offset_delta >= first_offset:
            latest.pop(key, None)
            latest[key] = (base_offset + offset_delta, value)
        position = stop
        count -= 1
    if position != end:
        raise ValueError("there are bytes after the last record")
    return 0
