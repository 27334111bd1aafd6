"""Names from clients are shown unchanged where that is safe, and cannot affect a log or a terminal."""

import json
import logging

import pytest

from quire.console.output import format_table, print_json
from quire.console.printable import LineFormatter, printable

FORGED = "orders\n2026-01-01T00:00:00.000 INFO quire: all is well\x1b[2J\x9b31m\u2028\u202e"


def record(message: str, *values: object, exception: Exception | None = None) -> logging.LogRecord:
    info = (type(exception), exception, exception.__traceback__) if exception is not None else None
    return logging.LogRecord("quire", logging.WARNING, "file", 1, message, values, info)


def test_ordinary_text_stays_as_it_is() -> None:
    for text in ("orders", "größe 日本語 ✓", "a b", ""):
        assert printable(text) == text


def test_control_characters_are_shown_as_escapes() -> None:
    shown = printable(FORGED)
    assert shown.isprintable()
    assert shown.startswith("orders\\n2026")
    assert shown.endswith("\\x1b[2J\\x9b31m\\u2028\\u202e")


def test_a_log_record_is_one_line_even_with_text_from_clients() -> None:
    line = LineFormatter("%(levelname)s: %(message)s").format(record("produce to %s failed", FORGED))
    assert line.isprintable()
    assert line.startswith("WARNING: produce to orders\\n2026")


def test_the_level_of_warnings_and_errors_has_a_colour_on_request() -> None:
    warning = record("WARNING: %s", FORGED)
    warning.levelno, warning.levelname = logging.WARNING, "WARNING"
    coloured = LineFormatter("%(levelname)s: %(message)s", coloured=True).format(warning)
    assert coloured.startswith("\x1b[33mWARNING\x1b[0m: WARNING: ") and coloured.count("\x1b") == 2
    plain = LineFormatter("%(levelname)s: %(message)s", coloured=True).format(information())
    assert plain == "INFO: serving"


def information() -> logging.LogRecord:
    return logging.LogRecord("quire", logging.INFO, __file__, 1, "serving", (), None)


def test_no_line_of_a_traceback_looks_like_a_record() -> None:
    try:
        raise RuntimeError(FORGED)
    except RuntimeError as error:
        lines = LineFormatter("%(message)s").format(record("failed", exception=error)).split("\n")
    assert lines[0] == "failed"
    assert len(lines) > 3
    assert all(line.startswith("  ") and line.isprintable() for line in lines[1:])


def test_a_stack_is_indented_too() -> None:
    logged = record("here")
    logged.stack_info = f"Stack:\n{FORGED}"
    assert all(line.isprintable() for line in LineFormatter("%(message)s").format(logged).split("\n"))


def test_a_table_shows_names_on_one_line_each() -> None:
    lines = format_table(["group", "members"], [[FORGED, 1], ["plain", 2]]).split("\n")
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)


def test_json_says_the_same_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"group": FORGED, "name": "größe"})
    out = capsys.readouterr().out
    assert json.loads(out) == {"group": FORGED, "name": "größe"}
    assert all(line.isprintable() for line in out.split("\n"))
    assert "größe" in out
