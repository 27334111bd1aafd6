# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, untyped-decorator, import-untyped, import-not-found, attr-defined, has-type"
# mypy: disable-error-code="no-any-return, no-redef, assignment, name-defined"
# ruff: noqa: F821, RET505, RUF059  (without its `else`, what is only for the interpreter would be compiled too)
"""The offset map: the last offset of each key, in a hash table of fixed size.

The table stores a digest of each key, a SipHash of 128 bits with a random seed for each table. Among a billion keys,
two have the same digest with a probability of 10^-21, and no client can choose keys that collide. So no record is
removed by mistake.

The slots of successive keys are far apart in memory, and waiting for memory would be most of the cost of compaction. So
a caller makes the table `look_ahead` at the keys of the next records: their slots are prefetched while it handles the
first.

When compiled, `key_table_native.pxd` makes this a C class and C functions.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.libc.stdlib import calloc, free
    from cython.cimports.quire.storage.cleaning.bytes_native import number
else:
    from quire.storage.cleaning.bytes_native import number

# For Cython, numbers this large must be declared as C integers.
_SIP_0 = cython.declare(cython.ulonglong, 0x736F6D6570736575)
_SIP_1 = cython.declare(cython.ulonglong, 0x646F72616E646F6D)
_SIP_2 = cython.declare(cython.ulonglong, 0x6C7967656E657261)
_SIP_3 = cython.declare(cython.ulonglong, 0x7465646279746573)

_AHEAD = cython.declare(cython.Py_ssize_t, 16)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _add(left: cython.ulonglong, right: cython.ulonglong) -> cython.ulonglong:
    if cython.compiled:
        return left + right
    else:
        return (left + right) & 0xFFFFFFFFFFFFFFFF


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _turn(value: cython.ulonglong, bits: cython.int) -> cython.ulonglong:
    if cython.compiled:
        return (value << bits) | (value >> (64 - bits))
    else:
        return ((value << bits) & 0xFFFFFFFFFFFFFFFF) | (value >> (64 - bits))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.ulonglong, cython.ulonglong, cython.ulonglong, cython.ulonglong))
def _rounds(
    count: cython.int, v0: cython.ulonglong, v1: cython.ulonglong, v2: cython.ulonglong, v3: cython.ulonglong
) -> tuple[int, int, int, int]:
    while count > 0:
        v0 = _add(v0, v1)
        v1 = _turn(v1, 13) ^ v0
        v0 = _turn(v0, 32)
        v2 = _add(v2, v3)
        v3 = _turn(v3, 16) ^ v2
        v0 = _add(v0, v3)
        v3 = _turn(v3, 21) ^ v0
        v2 = _add(v2, v1)
        v1 = _turn(v1, 17) ^ v2
        v2 = _turn(v2, 32)
        count -= 1
    return v0, v1, v2, v3


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.ulonglong, cython.ulonglong))
def _digest(
    data: cython.pointer(cython.const[cython.uchar]),
    position: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    seed0: cython.ulonglong,
    seed1: cython.ulonglong,
) -> tuple[int, int]:
    """SipHash-2-4 with a result of 128 bits."""
    v0: cython.ulonglong = seed0 ^ _SIP_0
    v1: cython.ulonglong = seed1 ^ _SIP_1 ^ 0xEE
    v2: cython.ulonglong = seed0 ^ _SIP_2
    v3: cython.ulonglong = seed1 ^ _SIP_3
    word: cython.ulonglong
    first: cython.ulonglong
    shift: cython.int
    left: cython.Py_ssize_t = size
    while left >= 0:
        # The last word has the rest of the key, and the key's length in its last byte.
        word = 0
        shift = 0
        while shift < 64 and left > 0:
            word |= cython.cast(cython.ulonglong, data[position]) << shift
            position += 1
            left -= 1
            shift += 8
        if shift < 64:
            word |= cython.cast(cython.ulonglong, size & 0xFF) << 56
            left = -1
        v3 ^= word
        v0, v1, v2, v3 = _rounds(2, v0, v1, v2, v3)
        v0 ^= word
    v2 ^= 0xEE
    v0, v1, v2, v3 = _rounds(4, v0, v1, v2, v3)
    first = v0 ^ v1 ^ v2 ^ v3
    v1 ^= 0xDD
    v0, v1, v2, v3 = _rounds(4, v0, v1, v2, v3)
    return first, v0 ^ v1 ^ v2 ^ v3


class KeyTable:
    """Digests of keys and the last offset of each, in slots of three words: two of the digest, and offset + 1.

    The memory is allocated without being touched, and freed together with the table.
    """

    def __init__(self, slots: int, limit: int, seed: bytes) -> None:
        """Room for `limit` keys, fewer than there are `slots`, so that a search always ends."""
        assert 0 < limit < slots
        if cython.compiled:
            self._words = cython.cast(cython.pointer(cython.ulonglong), calloc(slots, 24))
            if self._words is cython.NULL:
                raise MemoryError(f"no memory for a table of {slots} keys")
        else:
            self._words = memoryview(bytearray(slots * 24)).cast("Q")
            self._ahead = [0] * (2 * _AHEAD)
        self._slots = slots
        self._seed0 = int.from_bytes(seed[:8], "little")
        self._seed1 = int.from_bytes(seed[8:16], "little")
        self.count = 0
        self.limit = limit

    def __dealloc__(self) -> None:
        if cython.compiled:
            free(self._words)

    def offset_of(self, key: bytes) -> int:
        """The last offset of the key; -1 if it is not in the table."""
        first: cython.ulonglong
        second: cython.ulonglong
        first, second = _digest(key, 0, len(key), self._seed0, self._seed1)
        return cython.cast(cython.longlong, self._words[_word(self, first, second) + 2]) - 1


def look_ahead(
    table: KeyTable,
    data: cython.pointer(cython.const[cython.uchar]),
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
) -> cython.Py_ssize_t:
    """Computes the digests of the keys of some of the next `count` records, for `find` and `put` by index from 0 on.

    Returns how many; 0 if the first record cannot be read.
    """
    size: cython.longlong
    skipped: cython.longlong
    stop: cython.Py_ssize_t
    first: cython.ulonglong
    second: cython.ulonglong
    known: cython.Py_ssize_t = 0
    while known < _AHEAD and known < count:
        size, position = number(data, position, end)
        if position < 0 or size < 1 or size > end - position:
            break
        stop = position + size
        skipped, position = number(data, position + 1, stop)
        if position < 0:
            break
        skipped, position = number(data, position, stop)
        if position < 0:
            break
        size, position = number(data, position, stop)
        if position < 0 or size > stop - position:
            break
        if size >= 0:
            first, second = _digest(data, position, size, table._seed0, table._seed1)
            table._ahead[2 * known] = first
            table._ahead[2 * known + 1] = second
            if cython.compiled:
                quire_fetch_soon(table._words + first % cython.cast(cython.ulonglong, table._slots) * 3)
        known += 1
        position = stop
    return known


def _word(table: KeyTable, first: cython.ulonglong, second: cython.ulonglong) -> cython.Py_ssize_t:
    """The first word of the slot that has this key or, if none has, of the free slot for it."""
    slot: cython.Py_ssize_t = first % cython.cast(cython.ulonglong, table._slots)
    at: cython.Py_ssize_t
    while True:
        at = slot * 3
        if table._words[at + 2] == 0 or (table._words[at] == first and table._words[at + 1] == second):
            return at
        slot += 1
        if slot == table._slots:
            slot = 0


def find(table: KeyTable, index: cython.Py_ssize_t) -> cython.longlong:
    """The last offset of the key with this index in the last `look_ahead`; -1 if it is not in the table."""
    at: cython.Py_ssize_t = _word(table, table._ahead[2 * index], table._ahead[2 * index + 1])
    return cython.cast(cython.longlong, table._words[at + 2]) - 1


def put(table: KeyTable, index: cython.Py_ssize_t, offset: cython.longlong) -> cython.bint:
    """Sets the offset of the key with this index in the last `look_ahead`; False if the table is full."""
    at: cython.Py_ssize_t = _word(table, table._ahead[2 * index], table._ahead[2 * index + 1])
    if table._words[at + 2] == 0:
        if table.count == table.limit:
            return False
        table.count += 1
        table._words[at] = table._ahead[2 * index]
        table._words[at + 1] = table._ahead[2 * index + 1]
    table._words[at + 2] = cython.cast(cython.ulonglong, offset + 1)
    return True
