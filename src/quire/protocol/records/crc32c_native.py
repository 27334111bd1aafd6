# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, untyped-decorator, import-untyped, import-not-found, attr-defined, has-type"
# mypy: disable-error-code="no-any-return, no-redef, assignment, name-defined"
# ruff: noqa: RET505, F821  (without its `else`, what is only for the interpreter would be compiled too)
"""CRC-32C for compiled loops, which cannot call the crc32c package without holding the GIL.

When compiled, `crc32c_native.pxd` makes `crc32c_at` a C function. If the processor has an instruction for eight bytes
(`crc32c_step.h`), three ranges are processed at once, because the processor can start three such instructions in the
time that one takes; otherwise eight bytes are looked up in tables. Interpreted, it calls the package.
"""

from __future__ import annotations

import cython

from quire.protocol.records.checksum import crc32c as interpreted_crc32c

COMPILED: bool = cython.compiled

_STRETCH = cython.declare(cython.Py_ssize_t, 1024)
_tables = cython.declare(cython.uint[2048])
"""The effect of eight bytes at a time on a checksum, by position and value of each byte."""
_skips = cython.declare(cython.uint[1024])
"""The effect of a range of zeros on a checksum, by position and value of each of its four bytes."""
_has_step = cython.declare(cython.bint, False)


@cython.cfunc
def _fill_tables() -> cython.void:
    index: cython.int
    _step: cython.int
    value: cython.uint
    for index in range(256):
        value = index
        for _step in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        _tables[index] = value
    for index in range(256, 2048):
        value = _tables[index - 256]
        _tables[index] = (value >> 8) ^ _tables[value & 0xFF]


@cython.cfunc
def _fill_skips() -> cython.void:
    """Computed from each single bit: a checksum over zeros is the sum of those of its bits."""
    byte: cython.int
    index: cython.int
    bit: cython.int
    _zero: cython.Py_ssize_t
    value: cython.uint
    for byte in range(4):
        _skips[256 * byte] = 0
        for bit in range(8):
            value = cython.cast(cython.uint, 1) << (8 * byte + bit)
            for _zero in range(_STRETCH):
                value = (value >> 8) ^ _tables[value & 0xFF]
            for index in range(1 << bit):
                _skips[256 * byte + (1 << bit) + index] = value ^ _skips[256 * byte + index]


if cython.compiled:
    _fill_tables()
    _fill_skips()
    _has_step = crc32c_has_step()


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _skip(crc: cython.ulonglong) -> cython.ulonglong:
    return (
        _skips[crc & 0xFF]
        ^ _skips[256 + ((crc >> 8) & 0xFF)]
        ^ _skips[512 + ((crc >> 16) & 0xFF)]
        ^ _skips[768 + ((crc >> 24) & 0xFF)]
    )


def _by_steps(
    data: cython.pointer(cython.const[cython.uchar]),
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    crc: cython.uint,
) -> cython.uint:
    first: cython.ulonglong = crc
    second: cython.ulonglong
    third: cython.ulonglong
    stop: cython.Py_ssize_t
    while end - position >= 3 * _STRETCH:
        second = 0
        third = 0
        stop = position + _STRETCH
        while position < stop:
            first = crc32c_step(first, data + position)
            second = crc32c_step(second, data + position + _STRETCH)
            third = crc32c_step(third, data + position + 2 * _STRETCH)
            position += 8
        first = _skip(_skip(first) ^ second) ^ third
        position += 2 * _STRETCH
    while end - position >= 8:
        first = crc32c_step(first, data + position)
        position += 8
    return _by_tables(data, position, end, cython.cast(cython.uint, first))


def _by_tables(
    data: cython.pointer(cython.const[cython.uchar]),
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    crc: cython.uint,
) -> cython.uint:
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
            _tables[1792 + (low & 0xFF)]
            ^ _tables[1536 + ((low >> 8) & 0xFF)]
            ^ _tables[1280 + ((low >> 16) & 0xFF)]
            ^ _tables[1024 + (low >> 24)]
            ^ _tables[768 + (high & 0xFF)]
            ^ _tables[512 + ((high >> 8) & 0xFF)]
            ^ _tables[256 + ((high >> 16) & 0xFF)]
            ^ _tables[high >> 24]
        )
        position += 8
    while position < end:
        crc = (crc >> 8) ^ _tables[(crc ^ data[position]) & 0xFF]
        position += 1
    return crc


def crc32c_at(
    data: cython.pointer(cython.const[cython.uchar]), position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.uint:
    """The checksum of the bytes from `position` up to `end`."""
    if cython.compiled:
        if _has_step:
            return ~_by_steps(data, position, end, 0xFFFFFFFF)
        return ~_by_tables(data, position, end, 0xFFFFFFFF)
    else:
        return interpreted_crc32c(memoryview(data)[position:end])


def crc32c_of(data: bytes) -> int:
    """The checksum of all of it, for callers in Python."""
    if cython.compiled:
        return crc32c_at(cython.cast(cython.pointer(cython.const[cython.uchar]), data), 0, len(data))
    else:
        return interpreted_crc32c(data)


def crc32c_by_tables(data: bytes) -> int:
    """The same, as on a processor without the instruction."""
    checksum: cython.uint
    if cython.compiled:
        checksum = ~_by_tables(cython.cast(cython.pointer(cython.const[cython.uchar]), data), 0, len(data), 0xFFFFFFFF)
        return checksum
    else:
        return interpreted_crc32c(data)
