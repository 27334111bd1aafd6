# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, untyped-decorator, import-untyped, import-not-found, attr-defined, has-type"
# mypy: disable-error-code="no-any-return, no-redef, assignment, name-defined"
# ruff: noqa: F821, RET505  (without its `else`, what is only for the interpreter would be compiled too)
"""Numbers in batches and records, copying, and CRC-32C: helpers for the native loops of this package.

When compiled, `bytes_native.pxd` makes these C functions, which the other modules call without the GIL. The caller must
check bounds. Signed numbers are assembled by hand because Python's integers never wrap.
"""

from __future__ import annotations

import cython

from quire.protocol.records.checksum import crc32c as interpreted_crc32c

if cython.compiled:
    from cython.cimports.libc.string import memcpy
    from cython.cimports.quire.protocol.records.crc32c_native import crc32c_at

# For Cython, a number this large must be declared as a C integer.
_2_TO_32 = cython.declare(cython.longlong, 0x100000000)

# About 20 us of work.
_BUSY_BYTES = cython.declare(cython.Py_ssize_t, 1 << 17)


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
    """A zigzag varint of up to 64 bits and the position after it, which is -1 if there is no such number."""
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
    """Writes a zigzag varint and returns the position after it."""
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


def crc(
    data: cython.pointer(cython.const[cython.uchar]), position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.uint:
    if cython.compiled:
        make_way(position, end)
        return crc32c_at(data, position, end)
    else:
        return interpreted_crc32c(memoryview(data)[position:end])


def make_way(since: cython.Py_ssize_t, position: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Yields the processor if enough bytes were processed since `since`; returns the position of the last yield.

    The event loop may be waiting for the processor that this thread runs on, and the system may let it wait until the
    thread's time slice ends: milliseconds, which a client notices. The thread holds no lock here, not even the GIL, so
    this is the place to yield. When interpreted, the GIL changes hands often enough.
    """
    if position - since < _BUSY_BYTES:
        return since
    if cython.compiled:
        quire_let_others()
    return position


def let_others() -> None:
    """As `make_way`, for callers in Python after a read or a write of about a megabyte."""
    if cython.compiled:
        with cython.nogil:
            quire_let_others()
