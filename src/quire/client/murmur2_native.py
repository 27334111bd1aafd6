# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, import-untyped, no-any-return"
# ruff: noqa: RET505  (without the `else`, the branch for the interpreter would be compiled too)
"""Murmur2 as Kafka's clients hash a key: all clients must send the same key to the same partition.

The module is compiled if there is a C compiler; interpreted it gives the same results, but slowly.
"""

from __future__ import annotations

import cython

from quire.seams.disk import Buffer

COMPILED: bool = cython.compiled

# Typed, because a literal of more than 31 bits makes a compiled sum one of Python's integers.
_SEED = cython.declare(cython.uint, 0x9747B28C)
_FACTOR = cython.declare(cython.uint, 0x5BD1E995)
_ALL = cython.declare(cython.uint, 0xFFFFFFFF)


def murmur2_at(
    data: cython.pointer(cython.const[cython.uchar]), position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.uint:
    """The hash of the bytes from `position` up to `end`."""
    hashed: cython.uint = _SEED ^ cython.cast(cython.uint, end - position)
    word: cython.uint
    while end - position >= 4:
        word = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        word |= cython.cast(cython.uint, data[position + 3]) << 24
        word = (word * _FACTOR) & _ALL
        word ^= word >> 24
        word = (word * _FACTOR) & _ALL
        hashed = (hashed * _FACTOR) & _ALL
        hashed ^= word
        position += 4
    if end - position == 3:
        hashed ^= data[position + 2] << 16
    if end - position >= 2:
        hashed ^= data[position + 1] << 8
    if end - position >= 1:
        hashed ^= data[position]
        hashed = (hashed * _FACTOR) & _ALL
    hashed ^= hashed >> 13
    hashed = (hashed * _FACTOR) & _ALL
    hashed ^= hashed >> 15
    return hashed


def murmur2(key: Buffer) -> int:
    """The hash as an unsigned 32-bit number (Java's int, seen unsigned)."""
    data: cython.const[cython.uchar][::1] = key
    if cython.compiled:
        return murmur2_at(cython.address(data[0]), 0, len(data))
    else:
        return murmur2_at(data, 0, len(data))
