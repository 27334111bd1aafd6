"""Everything that the command writes to standard output and standard error goes through here.

Names, records and messages come from others, and a terminal obeys what they say: a control sequence may hide lines,
write to the clipboard or answer in the user's place. So text is shown as `printable` has it, with escapes as `\\x1b`.
The exceptions are what `quire` itself does to the screen, and records of `quire consume` that do not go to a terminal:
those are bytes that a program reads, and they stay as they are.
"""

import json
import sys
from collections.abc import Iterable
from typing import BinaryIO, Protocol

import click

from quire.cli.printable import printable

_encode = json.JSONEncoder(ensure_ascii=False).encode
_encode_indented = json.JSONEncoder(ensure_ascii=False, indent=2).encode
_encode_compactly = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def escaped(text: str) -> str:
    """For lines of text: tabs and ends of lines stay."""
    if text.isprintable():
        return text
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def to_json(value: object) -> str:
    """JSON that people can read, that stands for the same value, and does nothing to a terminal."""
    return _safe_json(_encode(value))


def to_indented_json(value: object) -> str:
    return _safe_json(_encode_indented(value))


def to_compact_json(value: object) -> str:
    return _safe_json(_encode_compactly(value))


def _safe_json(text: str) -> str:
    return "\n".join(line if line.isprintable() else _json_escaped(line) for line in text.split("\n"))


def _json_escaped(line: str) -> str:
    """With JSON's own escapes for what `json` leaves as it is: all of that is in strings."""
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    _write(escaped(text), err=err, nl=nl)


def confirm(question: str) -> None:
    """Ends the command unless the answer is yes."""
    click.confirm(printable(question), abort=True)


def rewrite_line(text: str, *, err: bool = False, nl: bool = False) -> None:
    """Takes the place of the line that the cursor is in."""
    _write(f"\r{printable(text)}", err=err, nl=nl)


def draw(screen: str) -> None:
    """For `watch`, which moves the cursor. What comes from others is escaped already."""
    _write(screen, nl=False)


def echo_many(lines: Iterable[str]) -> None:
    """Like `echo`, for thousands of lines: they stay in the buffer until it is full, or flushed."""
    for line in lines:
        sys.stdout.write(f"{printable(line)}\n")


def _write(text: str, *, err: bool = False, nl: bool = True) -> None:
    click.echo(text, err=err, nl=nl)


class Output(Protocol):
    def write(self, data: bytes, /) -> object: ...

    def flush(self) -> None: ...


def record_output() -> Output:
    """Where records go: to a terminal as text with escapes, elsewhere as the bytes they are."""
    return EscapedOutput(sys.stdout.buffer) if sys.stdout.isatty() else sys.stdout.buffer


class EscapedOutput:
    """Takes whole lines of bytes. What is not UTF-8 is shown as `\\xff`."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, data: bytes) -> None:
        self._out.write(escaped(data.decode(errors="backslashreplace")).encode())

    def flush(self) -> None:
        self._out.flush()
