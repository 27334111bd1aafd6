# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, untyped-decorator, import-untyped"
"""Encodes single records; `records_native`, which reads them, describes their format.

The module is compiled or interpreted, as is `records_native`. Only the other modules of this package call it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import cython

from quire.protocol.records.record import Header, Record
from quire.seams.disk import Buffer

COMPILED: bool = cython.compiled


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _zigzag(value: cython.longlong) -> cython.ulonglong:
    if value < 0:
        return cython.cast(cython.ulonglong, -(value + 1)) * 2 + 1
    return cython.cast(cython.ulonglong, value) * 2


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _varint_size(value: cython.longlong) -> cython.Py_ssize_t:
    raw: cython.ulonglong = _zigzag(value)
    size: cython.Py_ssize_t = 1
    while raw > 0x7F:
        raw >>= 7
        size += 1
    return size


@cython.cfunc
def _put_varint(out: bytearray, value: cython.longlong) -> cython.void:
    raw: cython.ulonglong = _zigzag(value)
    while raw > 0x7F:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)


@cython.cfunc
def _put_sized(out: bytearray, field: Any) -> cython.void:
    if field is None:
        out.append(1)  # zigzag of -1
    else:
        _put_varint(out, len(field))
        out += field


@cython.cfunc
@cython.inline
@cython.exceptval(-1)
def _sized_size(field: Any) -> cython.Py_ssize_t:
    if field is None:
        return 1
    size: cython.Py_ssize_t = len(field)
    return _varint_size(size) + size


def append_record(
    out: bytearray,
    offset_delta: cython.longlong,
    timestamp_delta: cython.longlong,
    key: Buffer | None,
    value: Buffer | None,
    headers: Sequence[Header],
) -> None:
    """Appends one record with its length to `out`."""
    size: cython.Py_ssize_t = 1 + _varint_size(timestamp_delta) + _varint_size(offset_delta)
    size += _sized_size(key) + _sized_size(value) + _varint_size(len(headers))
    encoded: list[tuple[bytes, bytes | None]] = []
    for name, content in headers:
        raw_name = name.encode()
        encoded.append((raw_name, content))
        size += _sized_size(raw_name) + _sized_size(content)
    _put_varint(out, size)
    out.append(0)
    _put_varint(out, timestamp_delta)
    _put_varint(out, offset_delta)
    _put_sized(out, key)
    _put_sized(out, value)
    _put_varint(out, len(headers))
    for raw_name, content in encoded:
        _put_sized(out, raw_name)
        _put_sized(out, content)


def append_records(out: bytearray, records: Iterable[Record], base_timestamp: int) -> None:
    """Appends records with the offset deltas 0, 1, 2 and so on to `out`."""
    for index, record in enumerate(records):
        append_record(out, index, record.timestamp - base_timestamp, record.key, record.value, record.headers)
