# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, untyped-decorator, import-untyped, import-not-found, attr-defined, has-type"
# mypy: disable-error-code="no-any-return"
# ruff: noqa: RET505  (without its `else`, what is only for the interpreter would be compiled too)
"""XXH3-64 with seed 0: the hash that Apache Kafka takes over the metadata of a group's topics.

A plain implementation of the public specification (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), for
inputs of a hundred bytes to a hundred kilobytes. A group may subscribe to ten thousand topics, and the first heartbeat
that looks at them needs the hash of each: so this is compiled where there was a C compiler at installation, and
interpreted elsewhere, with the same results. Short inputs are mixed directly, longer ones through eight lanes of 64
bits: a stripe is one value for each lane, a block sixteen stripes.
"""

from __future__ import annotations

import cython

COMPILED: bool = cython.compiled

_MASK = cython.declare(cython.ulonglong, (1 << 64) - 1)
"""Numbers of C are that long anyway; those of the interpreter are cut to it."""
_LOW = cython.declare(cython.ulonglong, (1 << 32) - 1)

_PRIME32_1 = cython.declare(cython.ulonglong, 0x9E3779B1)
_PRIME32_2 = cython.declare(cython.ulonglong, 0x85EBCA77)
_PRIME32_3 = cython.declare(cython.ulonglong, 0xC2B2AE3D)
_PRIME64_1 = cython.declare(cython.ulonglong, 0x9E3779B185EBCA87)
_PRIME64_2 = cython.declare(cython.ulonglong, 0xC2B2AE3D27D4EB4F)
_PRIME64_3 = cython.declare(cython.ulonglong, 0x165667B19E3779F9)
_PRIME64_4 = cython.declare(cython.ulonglong, 0x85EBCA77C2B2AE63)
_PRIME64_5 = cython.declare(cython.ulonglong, 0x27D4EB2F165667C5)
_PRIME_MX1 = cython.declare(cython.ulonglong, 0x165667919E3779F9)
_PRIME_MX2 = cython.declare(cython.ulonglong, 0x9FB21C651E98DF25)

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE_BYTES = cython.declare(cython.Py_ssize_t, 64)
_STRIPES_PER_BLOCK = cython.declare(cython.Py_ssize_t, 16)
_BLOCK_BYTES = cython.declare(cython.Py_ssize_t, 1024)
_SCRAMBLE_SECRET = cython.declare(cython.Py_ssize_t, 128)
_LAST_SECRET = cython.declare(cython.Py_ssize_t, 121)


def xxh3_64(source: bytes) -> int:
    """The hash as an unsigned number of 64 bits."""
    data: cython.const[cython.uchar][::1] = source
    secret: cython.const[cython.uchar][::1] = _SECRET
    size: cython.Py_ssize_t = len(source)
    if size <= 16:
        return _up_to_16(data, secret, size)
    if size <= 128:
        return _up_to_128(data, secret, size)
    if size <= 240:
        return _up_to_240(data, secret, size)
    return _long(data, secret, size)


@cython.cfunc
def _up_to_16(
    data: cython.const[cython.uchar][::1], secret: cython.const[cython.uchar][::1], size: cython.Py_ssize_t
) -> cython.ulonglong:
    low: cython.ulonglong
    high: cython.ulonglong
    mixed: cython.ulonglong
    if size > 8:
        low = _u64(data, 0) ^ _u64(secret, 24) ^ _u64(secret, 32)
        high = _u64(data, size - 8) ^ _u64(secret, 40) ^ _u64(secret, 48)
        return _avalanche(size + _swapped(low) + high + _folded_product(low, high))
    if size > 3:
        low = _u32(data, 0)
        high = _u32(data, size - 4)
        mixed = (high + (low << 32)) ^ _u64(secret, 8) ^ _u64(secret, 16)
        mixed ^= _rotated(mixed, 49) ^ _rotated(mixed, 24)
        mixed = mixed * _PRIME_MX2 & _MASK
        mixed ^= (mixed >> 35) + size
        mixed = mixed * _PRIME_MX2 & _MASK
        return mixed ^ mixed >> 28
    if size > 0:
        mixed = data[0]
        high = data[size >> 1]
        mixed = mixed << 16 | high << 24 | data[size - 1] | size << 8
        return _old_avalanche(mixed ^ _u32(secret, 0) ^ _u32(secret, 4))
    return _old_avalanche(_u64(secret, 56) ^ _u64(secret, 64))


@cython.cfunc
def _up_to_128(
    data: cython.const[cython.uchar][::1], secret: cython.const[cython.uchar][::1], size: cython.Py_ssize_t
) -> cython.ulonglong:
    total: cython.ulonglong = size * _PRIME64_1 & _MASK
    pair: cython.Py_ssize_t
    for pair in range((size - 1) // 32, -1, -1):
        total += _mixed_16(data, 16 * pair, secret, 32 * pair)
        total += _mixed_16(data, size - 16 * (pair + 1), secret, 32 * pair + 16)
    return _avalanche(total)


@cython.cfunc
def _up_to_240(
    data: cython.const[cython.uchar][::1], secret: cython.const[cython.uchar][::1], size: cython.Py_ssize_t
) -> cython.ulonglong:
    total: cython.ulonglong = size * _PRIME64_1 & _MASK
    position: cython.Py_ssize_t
    for position in range(0, 128, 16):
        total += _mixed_16(data, position, secret, position)
    total = _avalanche(total)
    for position in range(128, size // 16 * 16, 16):
        total += _mixed_16(data, position, secret, position - 128 + 3)
    return _avalanche(total + _mixed_16(data, size - 16, secret, 119))


@cython.cfunc
def _long(
    data: cython.const[cython.uchar][::1], secret: cython.const[cython.uchar][::1], size: cython.Py_ssize_t
) -> cython.ulonglong:
    if cython.compiled:
        lanes: cython.ulonglong[8]
    else:
        lanes = [0] * 8
    lanes[0], lanes[1], lanes[2], lanes[3] = _PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3
    lanes[4], lanes[5], lanes[6], lanes[7] = _PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1
    whole: cython.Py_ssize_t = (size - 1) // _BLOCK_BYTES * _BLOCK_BYTES
    block: cython.Py_ssize_t
    stripe: cython.Py_ssize_t
    lane: cython.Py_ssize_t
    mixed: cython.ulonglong
    for block in range(0, whole, _BLOCK_BYTES):
        for stripe in range(_STRIPES_PER_BLOCK):
            _accumulate(lanes, data, block + stripe * _STRIPE_BYTES, secret, 8 * stripe)
        for lane in range(8):
            mixed = lanes[lane]
            mixed ^= mixed >> 47 ^ _u64(secret, _SCRAMBLE_SECRET + 8 * lane)
            lanes[lane] = mixed * _PRIME32_1 & _MASK
    for stripe in range((size - 1 - whole) // _STRIPE_BYTES):
        _accumulate(lanes, data, whole + stripe * _STRIPE_BYTES, secret, 8 * stripe)
    _accumulate(lanes, data, size - _STRIPE_BYTES, secret, _LAST_SECRET)
    total: cython.ulonglong = size * _PRIME64_1 & _MASK
    for lane in range(0, 8, 2):
        total += _folded_product(
            lanes[lane] ^ _u64(secret, 11 + 8 * lane), lanes[lane + 1] ^ _u64(secret, 19 + 8 * lane)
        )
    return _avalanche(total)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _accumulate(
    lanes: cython.p_ulonglong,
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    secret: cython.const[cython.uchar][::1],
    secret_position: cython.Py_ssize_t,
) -> cython.void:
    lane: cython.Py_ssize_t
    value: cython.ulonglong
    key: cython.ulonglong
    for lane in range(8):
        value = _u64(data, position + 8 * lane)
        key = value ^ _u64(secret, secret_position + 8 * lane)
        lanes[lane ^ 1] = lanes[lane ^ 1] + value & _MASK
        lanes[lane] = lanes[lane] + (key & _LOW) * (key >> 32) & _MASK


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _mixed_16(
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    secret: cython.const[cython.uchar][::1],
    secret_position: cython.Py_ssize_t,
) -> cython.ulonglong:
    return _folded_product(
        _u64(data, position) ^ _u64(secret, secret_position),
        _u64(data, position + 8) ^ _u64(secret, secret_position + 8),
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _folded_product(a: cython.ulonglong, b: cython.ulonglong) -> cython.ulonglong:
    """The upper half of the product, of 128 bits, over the lower one."""
    if cython.compiled:
        low: cython.ulonglong = (a & _LOW) * (b & _LOW)
        crossed: cython.ulonglong = (a >> 32) * (b & _LOW) + (low >> 32)
        middle: cython.ulonglong = (a & _LOW) * (b >> 32) + (crossed & _LOW)
        high: cython.ulonglong = (a >> 32) * (b >> 32) + (crossed >> 32) + (middle >> 32)
        return high ^ (middle << 32 | low & _LOW)
    else:
        product = a * b
        return product & _MASK ^ product >> 64


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _avalanche(value: cython.ulonglong) -> cython.ulonglong:
    value &= _MASK
    value = (value ^ value >> 37) * _PRIME_MX1 & _MASK
    return value ^ value >> 32


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _old_avalanche(value: cython.ulonglong) -> cython.ulonglong:
    """That of XXH64, which the shortest inputs still end with."""
    value = (value ^ value >> 33) * _PRIME64_2 & _MASK
    value = (value ^ value >> 29) * _PRIME64_3 & _MASK
    return value ^ value >> 32


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _rotated(value: cython.ulonglong, bits: cython.int) -> cython.ulonglong:
    return (value << bits | value >> (64 - bits)) & _MASK


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _swapped(value: cython.ulonglong) -> cython.ulonglong:
    """Its bytes in the opposite order."""
    swapped: cython.ulonglong = 0
    place: cython.int
    for place in range(8):
        swapped = swapped << 8 | (value >> 8 * place & 0xFF)
    return swapped


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _u32(data: cython.const[cython.uchar][::1], position: cython.Py_ssize_t) -> cython.ulonglong:
    value: cython.ulonglong = 0
    place: cython.int
    for place in range(3, -1, -1):
        value = value << 8 | data[position + place]
    return value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _u64(data: cython.const[cython.uchar][::1], position: cython.Py_ssize_t) -> cython.ulonglong:
    if cython.compiled:
        value: cython.ulonglong = 0
        place: cython.int
        for place in range(7, -1, -1):
            value = value << 8 | data[position + place]
        return value
    else:
        return int.from_bytes(data[position : position + 8], "little")
