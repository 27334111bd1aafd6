"""All output of commands to standard output and standard error.

Names, records and messages come from clients, and a terminal executes the control sequences in them: these may hide
lines, write to the clipboard or type input for the user. So `printable` replaces them with escapes such as `\\x1b`.
There are three exceptions: live views, which move the cursor; colour (`colour`), which is added afterwards; and the
records that `quire consume` writes to a pipe or a file, which stay as they are.
"""

import json
import sys
from collections.abc import Iterable
from typing import BinaryIO, Protocol

import click

from quire.console.colour import Headings, Style, in_colour, paint, paint_headings
from quire.console.failure import Failure
from quire.console.printable import printable

_encode = json.JSONEncoder(ensure_ascii=False).encode
_encode_indented = json.JSONEncoder(ensure_ascii=False, indent=2).encode
_encode_compactly = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_WHITESPACE = str.maketrans("\t\n\r", "   ")


def escaped(text: str) -> str:
    """For text of several lines: keeps tabs and line ends."""
    if text.isprintable():
        return text
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def to_json(value: object) -> str:
    """Readable JSON of the same value, without control characters."""
    return _safe_json(_encode(value))


def to_indented_json(value: object) -> str:
    return _safe_json(_encode_indented(value))


def to_compact_json(value: object) -> str:
    return _safe_json(_encode_compactly(value))


def one_line_json(text: str) -> str:
    """JSON text on one line, without control characters; strings in JSON contain no raw tabs or line ends."""
    return _safe_json(text.translate(_WHITESPACE))


def _safe_json(text: str) -> str:
    return "\n".join(line if line.isprintable() else _json_escaped(line) for line in text.split("\n"))


def _json_escaped(line: str) -> str:
    """Adds JSON escapes for characters that `json` leaves unescaped; they occur only in strings."""
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)


def echo(text: str = "", *, err: bool = False, nl: bool = True, headings: Headings | None = None) -> None:
    """At a terminal, lines that are `headings` are bold."""
    safe = escaped(text)
    if headings is not None and in_colour(sys.stderr if err else sys.stdout):
        safe = paint_headings(safe, headings)
    _write(safe, err=err, nl=nl)


def echo_failure(program: str, sentence: str) -> None:
    """The error that ends a command, or one of several; at a terminal the program's name is red."""
    name = f"{program}:"
    shown = paint(name, Style.ERROR) if in_colour(sys.stderr) else name
    _write(f"{shown} {escaped(sentence)}", err=True)


def confirm(question: str) -> None:
    """Ends the command unless the answer is yes. The question is not part of the output, which may go to a pipe."""
    answer = ""
    while answer not in ("y", "yes"):
        _write(f"{printable(question)} [y/N]: ", err=True, nl=False)
        line = sys.stdin.readline()
        answer = line.strip().lower()
        if not line:
            _write("", err=True)
        if answer in ("", "n", "no"):
            raise Failure("not confirmed: nothing was changed.")


def rewrite_line(text: str, *, err: bool = False, nl: bool = False) -> None:
    """Replaces the current line."""
    _write(f"\r{printable(text)}", err=err, nl=nl)


def draw(screen: str) -> None:
    """For `live_screen`, which moves the cursor. Text from clients is already escaped."""
    _write(screen, nl=False)


def echo_many(lines: Iterable[str]) -> None:
    """Like `echo`, for thousands of lines: output is buffered until the buffer is full or flushed."""
    for line in lines:
        sys.stdout.write(f"{printable(line)}\n")


def _write(text: str, *, err: bool = False, nl: bool = True) -> None:
    click.echo(text, err=err, nl=nl)


class Output(Protocol):
    def write(self, data: bytes, /) -> object: ...

    def flush(self) -> None: ...


def record_output() -> Output:
    """The output for records: escaped text at a terminal, unchanged bytes elsewhere."""
    return EscapedOutput(sys.stdout.buffer) if sys.stdout.isatty() else sys.stdout.buffer


class EscapedOutput:
    """Accepts whole lines of bytes. Bytes that are not UTF-8 are shown as `\\xff`."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, data: bytes) -> None:
        self._out.write(escaped(data.decode(errors="backslashreplace")).encode())

    def flush(self) -> None:
        self._out.flush()
