"""Tagged fields: a count, then for each a tag, a size and that many bytes. The compiled codecs call this.

Fields that a schema does not know are kept in `unknown_tags`, so that a message can be passed on unchanged.
"""

from quire.protocol import varints
from quire.protocol.errors import ProtocolError
from quire.protocol.schema import Struct
from quire.seams import Buffer


def keep_unknown(structure: Struct, tag: int, data: Buffer, position: int, end: int) -> int:
    """Keeps the bytes of one tag; past the end of the data they are too short, which the decoder detects by `end`."""
    if structure.unknown_tags is None:
        structure.unknown_tags = {}
    structure.unknown_tags[tag] = bytes(data[position:end])
    return end


def read_unknown(structure: Struct, data: Buffer, position: int, count: int) -> int:
    """Keeps all tags of a structure that declares none, and returns the position after them."""
    for _ in range(count):
        tag, position = varints.read(data, position)
        size, position = varints.read(data, position)
        position = keep_unknown(structure, tag, data, position, position + size)
    return position


def skip_tags(data: Buffer, position: int, most: int) -> int:
    """The position after tagged fields that are ignored; more than `most` are refused."""
    try:
        if not data[position]:
            return position + 1
        count, position = varints.read(data, position)
        if count > most:
            raise ProtocolError(f"{count} tagged fields, more than {most}")
        for _ in range(count):
            _, position = varints.read(data, position)
            size, position = varints.read(data, position)
            position += size
    except IndexError:
        raise ProtocolError("ends inside its tagged fields") from None
    return position


def write_tags(out: bytearray, known: dict[int, bytearray], unknown: dict[int, bytes] | None) -> None:
    """The tagged fields of one structure in the order of their tags; known ones replace unknown ones."""
    fields: dict[int, bytes | bytearray] = {**(unknown or {}), **known}
    varints.write(out, len(fields))
    for tag in sorted(fields):
        varints.write(out, tag)
        varints.write(out, len(fields[tag]))
        out += fields[tag]
