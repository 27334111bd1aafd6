"""Tagged fields: a count, then for each a tag, a size and that many bytes. The compiled codecs call this.

Fields that a schema does not know are kept in `unknown_tags`, so that a message can be passed on whole.
"""

from typing import Final

from quire.protocol import varints
from quire.protocol.errors import ProtocolError
from quire.protocol.schema import Struct
from quire.seams import Buffer

MAX_STRUCTURES: Final = 1_000_000
"""Structures and tags in one message: at worst some 150 MB of Python objects. Real messages have a fifth of it."""


def keep_unknown(structure: Struct, tag: int, data: Buffer, position: int, end: int) -> int:
    """Keeps the bytes of one tag; past the end of the data they come out short, which the decoder notices by `end`."""
    if structure.unknown_tags is None:
        structure.unknown_tags = {}
    structure.unknown_tags[tag] = bytes(data[position:end])
    return end


def read_unknown(structure: Struct, data: Buffer, position: int, first: int, room: int) -> tuple[int, int]:
    """The tags of a structure that knows none, after the first byte of their count. Returns position and room left."""
    count = first
    if first > 127:
        count, position = varints.read_tail(data, position, first)
    if count > room:
        raise ProtocolError(f"more than {MAX_STRUCTURES} structures and tags")
    for _ in range(count):
        tag, position = varints.read(data, position)
        size, position = varints.read(data, position)
        position = keep_unknown(structure, tag, data, position, position + size)
    return position, room - count


def write_tags(out: bytearray, known: dict[int, bytearray], unknown: dict[int, bytes] | None) -> None:
    """The tagged fields of one structure in the order of their tags; known ones win over unknown ones."""
    fields: dict[int, bytes | bytearray] = {**(unknown or {}), **known}
    varints.write(out, len(fields))
    for tag in sorted(fields):
        varints.write(out, tag)
        varints.write(out, len(fields[tag]))
        out += fields[tag]
