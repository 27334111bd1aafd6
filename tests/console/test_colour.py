"""Colour appears only at terminals, and never if the user has refused it."""

import io
import os
import pty
import subprocess

import pytest

from quire.console.colour import Style, in_colour, paint, paint_headings
from quire.console.output import title_of
from tests.cli.command import QUIRE, environment, read_to_the_end

NOWHERE = ["topics", "list", "-b", "127.0.0.1:1", "--timeout", "1"]


def at_a_terminal(*arguments: str, **variables: str) -> str:
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    plain = {name: value for name, value in environment().items() if name not in ("NO_COLOR", "TERM")}
    process = subprocess.Popen(
        [*QUIRE, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=plain | {"TERM": "xterm"} | variables
    )
    os.close(theirs)
    try:
        return read_to_the_end(ours).decode()
    finally:
        os.close(ours)
        process.wait()


def test_errors_are_red_at_a_terminal() -> None:
    assert at_a_terminal(*NOWHERE).startswith("\x1b[1;31mquire:\x1b[0m ")


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_user_can_refuse_colour(variables: dict[str, str]) -> None:
    shown = at_a_terminal(*NOWHERE, **variables)
    assert shown.startswith("quire: ") and "\x1b" not in shown


def test_there_is_no_colour_in_a_pipe() -> None:
    done = subprocess.run([*QUIRE, *NOWHERE], capture_output=True, env=environment({"TERM": "xterm"}))
    assert done.stderr.startswith(b"quire: ") and b"\x1b" not in done.stderr


def test_titles_of_tables_are_bold_at_a_terminal_only() -> None:
    shown = at_a_terminal("storage", "info", "--data", "/nonexistent/data")
    assert shown.startswith("\x1b[1mDIRECTORY ")
    assert shown.count("\x1b") == 2


def test_a_stream_that_is_closed_or_missing_has_no_colour() -> None:
    closed = io.StringIO()
    closed.close()
    assert not in_colour(closed) and not in_colour(None)


def test_only_headings_are_painted() -> None:
    headings = title_of(("name", "can change"), ("topic",))
    assert paint_headings("NAME  CAN CHANGE\nname  can change\nTOPIC", headings) == (
        f"{paint('NAME  CAN CHANGE', Style.HEADING)}\nname  can change\n{paint('TOPIC', Style.HEADING)}"
    )
