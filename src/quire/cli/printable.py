"""Text that others chose, on this terminal and in this log.

Names of groups, clients and members, and parts of error messages, come from clients. A line break in one
would look like a line of our own, and an escape sequence would do to a terminal what it says. Both are shown, not done.
"""

import logging


def printable(text: str) -> str:
    """`text` with everything that is no visible character or space as an escape, as in `\\n` and `\\x1b`."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


class LineFormatter(logging.Formatter):
    """One record, one line; the lines of a traceback are indented, so that none of them looks like a record."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return printable(super().formatMessage(record))

    def formatException(self, ei: "logging._SysExcInfoType") -> str:  # noqa: N802
        return _indented(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802
        return _indented(super().formatStack(stack_info))


def _indented(text: str) -> str:
    return "\n".join("  " + printable(line) for line in text.split("\n"))
