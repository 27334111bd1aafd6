"""Colour in terminals: headings are bold, errors red and warnings yellow.

Colour is added after the text was escaped, so text from clients can never choose it. It is off in pipes and files, with
NO_COLOR (https://no-color.org) and with TERM=dumb. `terminal`, `live_screen` and the log of a node use this module.
"""

import os
from collections.abc import Callable
from enum import Enum
from typing import IO

Headings = Callable[[str], bool]
"""Whether a line is a heading."""


class Style(Enum):
    """The parameters of the terminal's sequence SGR."""

    HEADING = "1"
    WARNING = "33"
    ERROR = "1;31"


def in_colour(stream: IO[str] | None) -> bool:
    """Whether what is written to this stream may have colours."""
    if stream is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def paint(text: str, style: Style) -> str:
    """`text` must be escaped already."""
    return f"\x1b[{style.value}m{text}\x1b[0m" if text else text


def paint_headings(text: str, headings: Headings) -> str:
    """Escaped text of several lines, with its headings in bold."""
    return "\n".join(paint(line, Style.HEADING) if headings(line) else line for line in text.split("\n"))
