# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, import-untyped, no-any-return"
"""Murmur2 as Kafka's clients hash a key: the same key must land in the same partition whichever client wrote it.

One source, run as it is or compiled where there is a C compiler; interpreted it gives the same numbers, slowly.
"""

from __future__ import annotations

import cython

from quire.seams.disk import Buffer

COMPILED: bool = cython.compiled


def murmur2(key: Buffer) -> int:
    """The hash as an unsigned 32-bit number (Java's int, seen unsigned)."""
    data: cython.const[cython.uchar][::1] = key
    size: cython.Py_ssize_t = len(data)
    position: cython.Py_ssize_t = 0
    hashed: cython.uint = 0x9747B28C ^ size
    word: cython.uint
    while size - position >= 4:
        word = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        word |= cython.cast(cython.uint, data[position + 3]) << 24
        word = (word * 0x5BD1E995) & 0xFFFFFFFF
        word ^= word >> 24
        word = (word * 0x5BD1E995) & 0xFFFFFFFF
        hashed = (hashed * 0x5BD1E995) & 0xFFFFFFFF
        hashed ^= word
        position += 4
    if size - position == 3:
        hashed ^= data[position + 2] << 16
    if size - position >= 2:
        hashed ^= data[position + 1] << 8
    if size - position >= 1:
        hashed ^= data[position]
        hashed = (hashed * 0x5BD1E995) & 0xFFFFFFFF
    hashed ^= hashed >> 13
    hashed = (hashed * 0x5BD1E995) & 0xFFFFFFFF
    hashed ^= hashed >> 15
    return hashed
