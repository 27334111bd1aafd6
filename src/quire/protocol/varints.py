"""Unsigned varints: seven bits per byte, the lowest first.

Values below 128 take one byte, and the compiled codecs handle them inline; all others are handled here.
"""

from quire.protocol.errors import ProtocolError
from quire.seams import Buffer


def read(data: Buffer, position: int) -> tuple[int, int]:
    """The value at `position` and the position after it; IndexError at the end of the data."""
    first = data[position]
    if first < 128:
        return first, position + 1
    return read_tail(data, position + 1, first)


def read_tail(data: Buffer, position: int, first: int) -> tuple[int, int]:
    """Continues after a first byte above 127. Values have at most 32 bits, which limits malicious varints."""
    byte = data[position]
    position += 1
    if byte < 128:
        return byte << 7 | first & 0x7F, position
    value = (byte & 0x7F) << 7 | first & 0x7F
    for shift in (14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise ProtocolError("a varint has more than 32 bits")


def write(out: bytearray, value: int) -> None:
    assert value >= 0, "only unsigned varints are written"
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
