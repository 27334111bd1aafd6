"""XXH3-64 with seed 0: the hash that Apache Kafka takes over the metadata of a group's topics.

A plain implementation of the public specification (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), for
inputs of a few hundred bytes to some ten kilobytes, once for every change of a topic. Short inputs are mixed directly,
longer ones through eight lanes of 64 bits: a stripe is one value for each lane, a block sixteen stripes.
"""

from collections.abc import Sequence
from struct import unpack_from

_MASK = (1 << 64) - 1
_LOW = (1 << 32) - 1

_PRIME32_1, _PRIME32_2, _PRIME32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_PRIME64_1, _PRIME64_2, _PRIME64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_PRIME64_4, _PRIME64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_PRIME_MX1, _PRIME_MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE_BYTES = 64
_STRIPES_PER_BLOCK = 16
_BLOCK_BYTES = _STRIPE_BYTES * _STRIPES_PER_BLOCK


def xxh3_64(data: bytes) -> int:
    """The hash as an unsigned number of 64 bits."""
    size = len(data)
    if size <= 16:
        return _up_to_16(data, size)
    if size <= 128:
        return _up_to_128(data, size)
    if size <= 240:
        return _up_to_240(data, size)
    return _long(data, size)


def _up_to_16(data: bytes, size: int) -> int:
    if size > 8:
        low = _u64(data, 0) ^ _secret(24) ^ _secret(32)
        high = _u64(data, size - 8) ^ _secret(40) ^ _secret(48)
        swapped = int.from_bytes(low.to_bytes(8, "little"))
        return _avalanche(size + swapped + high + _folded_product(low, high))
    if size > 3:
        first, last = _u32(data, 0), _u32(data, size - 4)
        mixed = (last + (first << 32)) ^ _secret(8) ^ _secret(16)
        mixed ^= _rotated(mixed, 49) ^ _rotated(mixed, 24)
        mixed = mixed * _PRIME_MX2 & _MASK
        mixed ^= (mixed >> 35) + size
        mixed = mixed * _PRIME_MX2 & _MASK
        return mixed ^ mixed >> 28
    if size > 0:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return _old_avalanche(combined ^ _u32(_SECRET, 0) ^ _u32(_SECRET, 4))
    return _old_avalanche(_secret(56) ^ _secret(64))


def _up_to_128(data: bytes, size: int) -> int:
    total = size * _PRIME64_1
    for pair in range((size - 1) // 32, -1, -1):
        total += _mixed_16(data, 16 * pair, 32 * pair)
        total += _mixed_16(data, size - 16 * (pair + 1), 32 * pair + 16)
    return _avalanche(total)


def _up_to_240(data: bytes, size: int) -> int:
    total = size * _PRIME64_1
    for position in range(0, 128, 16):
        total += _mixed_16(data, position, position)
    total = _avalanche(total)
    for position in range(128, size // 16 * 16, 16):
        total += _mixed_16(data, position, position - 128 + 3)
    return _avalanche(total + _mixed_16(data, size - 16, 119))


def _long(data: bytes, size: int) -> int:
    lanes = [_PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3, _PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1]
    last_byte = size - 1
    whole = last_byte // _BLOCK_BYTES * _BLOCK_BYTES
    for block in range(0, whole, _BLOCK_BYTES):
        for stripe in range(_STRIPES_PER_BLOCK):
            _accumulate(lanes, data, block + stripe * _STRIPE_BYTES, _LANE_SECRETS[stripe])
        lanes = [
            (lane ^ lane >> 47 ^ secret) * _PRIME32_1 & _MASK
            for lane, secret in zip(lanes, _SCRAMBLE_SECRETS, strict=True)
        ]
    for stripe in range((last_byte - whole) // _STRIPE_BYTES):
        _accumulate(lanes, data, whole + stripe * _STRIPE_BYTES, _LANE_SECRETS[stripe])
    _accumulate(lanes, data, size - _STRIPE_BYTES, _LAST_SECRETS)
    total = size * _PRIME64_1
    for lane in range(0, 8, 2):
        total += _folded_product(lanes[lane] ^ _secret(11 + 8 * lane), lanes[lane + 1] ^ _secret(19 + 8 * lane))
    return _avalanche(total)


def _accumulate(lanes: list[int], data: bytes, position: int, secrets: Sequence[int]) -> None:
    for lane, (value, secret) in enumerate(zip(unpack_from("<8Q", data, position), secrets, strict=True)):
        key = value ^ secret
        lanes[lane ^ 1] = lanes[lane ^ 1] + value & _MASK
        lanes[lane] = lanes[lane] + (key & _LOW) * (key >> 32) & _MASK


def _mixed_16(data: bytes, position: int, secret: int) -> int:
    return _folded_product(_u64(data, position) ^ _secret(secret), _u64(data, position + 8) ^ _secret(secret + 8))


def _folded_product(a: int, b: int) -> int:
    product = a * b
    return product & _MASK ^ product >> 64


def _avalanche(value: int) -> int:
    value &= _MASK
    value = (value ^ value >> 37) * _PRIME_MX1 & _MASK
    return value ^ value >> 32


def _old_avalanche(value: int) -> int:
    """That of XXH64, which the shortest inputs still end with."""
    value = (value ^ value >> 33) * _PRIME64_2 & _MASK
    value = (value ^ value >> 29) * _PRIME64_3 & _MASK
    return value ^ value >> 32


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _u32(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 4], "little")


def _u64(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 8], "little")


def _secret(position: int) -> int:
    return _u64(_SECRET, position)


_LANE_SECRETS = [unpack_from("<8Q", _SECRET, 8 * stripe) for stripe in range(_STRIPES_PER_BLOCK)]
_SCRAMBLE_SECRETS = unpack_from("<8Q", _SECRET, 128)
_LAST_SECRETS = unpack_from("<8Q", _SECRET, 121)
