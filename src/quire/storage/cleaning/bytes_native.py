# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, untyped-decorator, import-untyped, import-not-found, attr-defined, has-type"
# mypy: disable-error-code="no-any-return, no-redef, assignment"
# ruff: noqa: RET505  (without its `else`, what is only for the interpreter would be compiled too)
"""Numbers in batches and records, copying, and CRC-32C: what the loops of this package are made of.

Compiled, `bytes_native.pxd` beside it makes these functions of C, which the other modules call without the GIL. Bounds
are the caller's to check. Signed numbers are put together by hand because interpreted ones never wrap.
"""

from __future__ import annotations

import cython

from quire.protocol.records.checksum import crc32c as interpreted_crc32c

if cython.compiled:
    from cython.cimports.libc.string import memcpy

# Compiled, a number this large has to be declared to be one of C's.
_2_TO_32 = cython.declare(cython.longlong, 0x100000000)


def uint32(data: cython.pointer(cython.const[cython.uchar]), position: cython.Py_ssize_t) -> cython.uint:
    return (
        (cython.cast(cython.uint, data[position]) << 24)
        | (cython.cast(cython.uint, data[position + 1]) << 16)
        | (cython.cast(cython.uint, data[position + 2]) << 8)
        | data[position + 3]
    )


def int32(data: cython.pointer(cython.const[cython.uchar]), position: cython.Py_ssize_t) -> cython.longlong:
    value: cython.longlong = uint32(data, position)
    if value > 0x7FFFFFFF:
        value -= _2_TO_32
    return value


def int64(data: cython.pointer(cython.const[cython.uchar]), position: cython.Py_ssize_t) -> cython.longlong:
    return int32(data, position) * _2_TO_32 + uint32(data, position + 4)


def put_int(
    out: cython.pointer(cython.uchar), position: cython.Py_ssize_t, size: cython.int, value: cython.longlong
) -> cython.void:
    at: cython.Py_ssize_t = position + size - 1
    while at >= position:
        out[at] = value & 0xFF
        value >>= 8
        at -= 1


def number(
    data: cython.pointer(cython.const[cython.uchar]), position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[int, int]:
    """A zigzag varint of up to 64 bits and the position behind it, which is -1 if there is no such number."""
    byte: cython.ulonglong
    raw: cython.ulonglong = 0
    shift: cython.int = 0
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        if shift == 63 and byte > 1:
            return 0, -1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw & 1:
                return -cython.cast(cython.longlong, raw >> 1) - 1, position
            return cython.cast(cython.longlong, raw >> 1), position
        shift += 7
    return 0, -1


def number_size(value: cython.longlong) -> cython.Py_ssize_t:
    size: cython.Py_ssize_t = 1
    if value < 0:
        value = -(value + 1)
    value >>= 6
    while value > 0:
        value >>= 7
        size += 1
    return size


def put_number(
    out: cython.pointer(cython.uchar), position: cython.Py_ssize_t, value: cython.longlong
) -> cython.Py_ssize_t:
    """Writes a zigzag varint and returns the position behind it."""
    low: cython.longlong = 0
    rest: cython.longlong
    if value < 0:
        value = -(value + 1)
        low = 1
    # Seven bits of the zigzag form are six of the number and its sign; all that follow are seven of the number.
    low |= (value & 0x3F) << 1
    rest = value >> 6
    while rest > 0:
        out[position] = low | 0x80
        position += 1
        low = rest & 0x7F
        rest >>= 7
    out[position] = low
    return position + 1


def copy(
    out: cython.pointer(cython.uchar),
    out_position: cython.Py_ssize_t,
    data: cython.pointer(cython.const[cython.uchar]),
    position: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.void:
    if size <= 0:
        return
    if cython.compiled:
        memcpy(cython.address(out[out_position]), cython.address(data[position]), size)
    else:
        out[out_position : out_position + size] = data[position : position + size]


# CRC-32C once more: the package that does it elsewhere cannot be called without the GIL.

_crc_table = cython.declare(cython.uint[2048])


@cython.cfunc
def _fill_crc_table() -> cython.void:
    index: cython.int
    _step: cython.int
    value: cython.uint
    for index in range(256):
        value = index
        for _step in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        _crc_table[index] = value
    for index in range(256, 2048):
        value = _crc_table[index - 256]
        _crc_table[index] = (value >> 8) ^ _crc_table[value & 0xFF]


if cython.compiled:
    _fill_crc_table()


def _crc32c(
    data: cython.pointer(cython.const[cython.uchar]), position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.uint:
    """Eight bytes at a time, each through a table of its own."""
    crc: cython.uint = ~cython.cast(cython.uint, 0)
    low: cython.uint
    high: cython.uint
    while end - position >= 8:
        low = crc ^ (
            data[position]
            | (cython.cast(cython.uint, data[position + 1]) << 8)
            | (cython.cast(cython.uint, data[position + 2]) << 16)
            | (cython.cast(cython.uint, data[position + 3]) << 24)
        )
        high = (
            data[position + 4]
            | (cython.cast(cython.uint, data[position + 5]) << 8)
            | (cython.cast(cython.uint, data[position + 6]) << 16)
            | (cython.cast(cython.uint, data[position + 7]) << 24)
        )
        crc = (
            _crc_table[1792 + (low & 0xFF)]
            ^ _crc_table[1536 + ((low >> 8) & 0xFF)]
            ^ _crc_table[1280 + ((low >> 16) & 0xFF)]
            ^ _crc_table[1024 + (low >> 24)]
            ^ _crc_table[768 + (high & 0xFF)]
            ^ _crc_table[512 + ((high >> 8) & 0xFF)]
            ^ _crc_table[256 + ((high >> 16) & 0xFF)]
            ^ _crc_table[high >> 24]
        )
        position += 8
    while position < end:
        crc = (crc >> 8) ^ _crc_table[(crc ^ data[position]) & 0xFF]
        position += 1
    return ~crc


def crc(
    data: cython.pointer(cython.const[cython.uchar]), position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.uint:
    if cython.compiled:
        return _crc32c(data, position, end)
    else:
        return interpreted_crc32c(memoryview(data)[position:end])
