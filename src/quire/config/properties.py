"""Java's properties files, such as Kafka's server.properties.

`name = value`, `name: value` and `name value` are equivalent; # and ! begin comment lines; a backslash at the end of a
line continues it, elsewhere it escapes (\\t, \\n, \\u0041, and any separator in a name). If a name occurs twice, the
last value counts.
"""

from collections.abc import Iterator
from typing import NamedTuple

from quire.config.errors import ConfigError

_SPACE = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    value: str
    line: int


def read_properties(text: str) -> dict[str, Property]:
    found: dict[str, Property] = {}
    for line, logical in _logical_lines(text):
        name, value = _split(logical)
        found[_unescape(name, line)] = Property(_unescape(value, line), line)
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines with continuations joined and without comments, each with the number of its first line."""
    begun: str | None = None
    begun_at = 0
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        line = raw.lstrip(_SPACE)
        if begun is None:
            if not line or line[0] in "#!":
                continue
            begun, begun_at = "", number
        if _is_continued(line):
            begun += line[:-1]
        else:
            yield begun_at, begun + line
            begun = None
    if begun is not None:
        yield begun_at, begun


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=:" + _SPACE:
        end += 2 if line[end] == "\\" else 1
    name, rest = line[:end], line[end:].lstrip(_SPACE)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_SPACE)
    return name, rest


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    pieces: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            character = text[position]
            position += 1
            if character == "u":
                digits = text[position : position + 4]
                position += 4
                character = _code_point(digits, line)
            else:
                character = _ESCAPES.get(character, character)
        pieces.append(character)
    return "".join(pieces)


def _code_point(digits: str, line: int) -> str:
    try:
        if len(digits) == 4:
            return chr(int(digits, 16))
    except ValueError:
        pass
    raise ConfigError("", f"line {line}: \\u{digits} is not a character; write four hexadecimal digits after \\u.")
