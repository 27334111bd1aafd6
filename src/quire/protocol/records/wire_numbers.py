"""The numbers in batches and records: big-endian ones of a fixed size, and zigzag varints.

Interpreted loops call these functions. Compiled loops use the same functions from `wire_numbers.pxd`, which become part
of each module that imports them: a record has half a dozen such numbers, and a call into another module would cost more
than reading one. The tests of the loops run both ways and compare the results. For fixed sizes, the caller checks the
bounds.
"""

from quire.seams.disk import Buffer


def int16(data: Buffer, at: int) -> int:
    raw = data[at] << 8 | data[at + 1]
    return raw - (raw >> 15 << 16)


def uint32(data: Buffer, at: int) -> int:
    return data[at] << 24 | data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3]


def int32(data: Buffer, at: int) -> int:
    raw = uint32(data, at)
    return raw - (raw >> 31 << 32)


def int64(data: Buffer, at: int) -> int:
    return (int32(data, at) << 32) + uint32(data, at + 4)


def varlong(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """A zigzag number of up to 64 bits and the position after it, which is -1 if there is no such number."""
    raw = shift = 0
    while position < end:
        byte = data[position]
        position += 1
        if shift == 63 and byte > 1:
            break
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    return 0, -1


def varint(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """A zigzag number of up to 32 bits, in at most five bytes, and the position after it or -1."""
    value, after = varlong(data, position, end)
    if after - position > 5 or not -0x80000000 <= value <= 0x7FFFFFFF:
        return 0, -1
    return value, after


def sized(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """The length of a nullable field (-1: null) and the position where its bytes start, or -1 if they do not fit."""
    size, position = varint(data, position, end)
    if position < 0 or size < -1 or size > end - position:
        return 0, -1
    return size, position
