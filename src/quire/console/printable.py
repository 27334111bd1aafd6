"""Makes text from clients safe for terminals and logs.

Names of groups, clients and members, and parts of error messages, come from clients. A line break in one would forge a
line of the log, and a terminal would execute an escape sequence. Both are shown as escapes instead.
"""

import logging

from quire.console.colour import Style, paint


def printable(text: str) -> str:
    """`text` with every character that is neither visible nor a space as an escape, such as `\\n` and `\\x1b`."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


class LineFormatter(logging.Formatter):
    """One line for each log record. Lines of a traceback are indented, so that none looks like a record.

    With `coloured`, the level of warnings and errors has a colour.
    """

    def __init__(self, layout: str, time_layout: str | None = None, *, coloured: bool = False) -> None:
        super().__init__(layout, time_layout)
        self._coloured = coloured

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        line = printable(super().formatMessage(record))
        if not self._coloured or record.levelno < logging.WARNING:
            return line
        style = Style.ERROR if record.levelno >= logging.ERROR else Style.WARNING
        return line.replace(record.levelname, paint(record.levelname, style), 1)

    def formatException(self, ei: "logging._SysExcInfoType") -> str:  # noqa: N802
        return _indented(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802
        return _indented(super().formatStack(stack_info))


def _indented(text: str) -> str:
    return "\n".join("  " + printable(line) for line in text.split("\n"))
