"""Foreign text cannot affect the terminal, and reaches programs unchanged."""

import io
import json
import os
import pty
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.cli.records.record_format import json_line
from quire.client.offsets import TopicPartition
from quire.console.failure import Failure
from quire.console.live_screen import HOME, REST_OF_LINE, REST_OF_SCREEN, fit
from quire.console.output import format_table
from quire.console.printable import printable
from quire.console.terminal import (
    EscapedOutput,
    echo,
    escaped,
    to_compact_json,
    to_indented_json,
    to_json,
)
from quire.protocol.records import Record

SEQUENCES = ["\x1b]0;title\x07", "\x9b31m", "\x1b[2J", "\r", "\x08", "\x7f", "\u202e", "\u2066", "\ud800"]
UNSAFE = {*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), "\u202e", "\u2066", "\u2028", "\ud800"}


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_no_control_sequence_reaches_the_terminal(sequence: str, capfd: pytest.CaptureFixture[str]) -> None:
    name = f"before{sequence}after"
    echo(name)
    echo(name, err=True)
    echo(format_table(["name"], [[name]]))
    Failure(name).show()
    seen = capfd.readouterr()
    assert not UNSAFE & {*seen.out, *seen.err} - {"\n"}
    assert seen.out.count("after") == 2 and seen.err.count("after") == 2


def test_escapes_are_unambiguous() -> None:
    assert escaped("a\x1b[31mb\x9b\u202e\ud800\nc\td") == "a\\x1b[31mb\\x9b\\u202e\\ud800\nc\td"
    assert printable("a\nb\tc\r") == "a\\nb\\tc\\r"
    assert escaped("Zürich, 東京, 🙂") == "Zürich, 東京, 🙂"


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_becomes_printable(text: str) -> None:
    assert not UNSAFE & {*printable(text)}
    printable(text).encode()


@given(st.recursive(st.text(st.characters(exclude_categories=[])), lambda each: st.dictionaries(st.text(), each)))
def test_json_has_the_same_value_and_no_control_character(value: object) -> None:
    for write in (to_json, to_compact_json, to_indented_json):
        text = write(value)
        assert json.loads(text) == value
        assert not UNSAFE & {*text} - {"\n"}
        text.encode()


def test_a_record_in_json_has_no_control_character() -> None:
    record = Record(0, 0, "\x9b31m".encode(), "\x7f\u202e\x1b".encode(), [("\x1b\x9c", b"\xc2\x9b")])
    line = json_line(TopicPartition("orders", 0), record)
    assert not UNSAFE & {*line.decode().rstrip("\n")}
    shown = json.loads(line)
    assert (shown["key"], shown["value"]) == ("\x9b31m", "\x7f\u202e\x1b")
    assert shown["headers"] == [{"name": "\x1b\x9c", "value": "\x9b"}]


def test_a_live_view_has_no_sequences_but_its_own() -> None:
    view = fit("group \x1b[2J\u202e", 80, 24)
    assert view == f"{HOME}group \\x1b[2J\\u202e{REST_OF_LINE}\n{REST_OF_SCREEN}"


def test_records_at_a_terminal_are_text_with_escapes() -> None:
    out = io.BytesIO()
    EscapedOutput(out).write("Zürich \x1b[31m\n".encode() + b"\xff\x9b\n")
    assert out.getvalue().decode() == "Zürich \\x1b[31m\n\\xff\\x9b\n"


PRINT_A_RECORD = """
from quire.console.terminal import record_output
record_output().write(b"\\x1b]0;owned\\x07\\xff\\n")
"""


def test_only_a_terminal_gets_escapes() -> None:
    """Records are written to a pipe byte for byte."""
    piped = subprocess.run([sys.executable, "-c", PRINT_A_RECORD], stdout=subprocess.PIPE, check=True)
    assert piped.stdout == b"\x1b]0;owned\x07\xff\n"
    ours, theirs = pty.openpty()
    try:
        subprocess.run([sys.executable, "-c", PRINT_A_RECORD], stdout=theirs, check=True)
        assert os.read(ours, 1000) == b"\\x1b]0;owned\\x07\\xff\r\n"
    finally:
        os.close(ours)
        os.close(theirs)
