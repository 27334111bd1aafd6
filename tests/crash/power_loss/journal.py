"""The records of recorder.c, in order."""

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import NamedTuple

_HEADER = Struct("<cQQII")


class Change(NamedTuple):
    """What one record says; recorder.c lists the kinds."""

    kind: str
    first: int
    second: int
    content: bytes
    other: bytes

    @property
    def path(self) -> str:
        return self.content.decode()

    @property
    def target(self) -> str:
        return self.other.decode()


def read_journal(path: Path) -> Iterator[Change]:
    """The whole records: the process may have been killed while it wrote the last one."""
    if not path.exists():
        return
    with path.open("rb") as journal:
        while len(start := journal.read(_HEADER.size)) == _HEADER.size:
            kind, first, second, length, other_length = _HEADER.unpack(start)
            content, other = journal.read(length), journal.read(other_length)
            if len(content) + len(other) < length + other_length:
                return
            yield Change(kind.decode(), first, second, content, other)
