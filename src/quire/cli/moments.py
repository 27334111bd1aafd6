"""Moments in time as people type them: milliseconds, or ISO 8601 with local time where no zone is given."""

from datetime import datetime
from typing import Any

import click


def parse_moment(text: str) -> int:
    """Milliseconds since 1970; ValueError for anything else."""
    if text.isascii() and text.isdigit():
        return int(text)
    return int(datetime.fromisoformat(text).astimezone().timestamp() * 1000)


class Moment(click.ParamType[int]):
    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_moment(str(value))
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is not a time; write milliseconds since 1970 or ISO 8601, as in 2026-01-31T12:00:00Z",
                param,
                ctx,
            )
