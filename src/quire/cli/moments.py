"""Points in time and durations as options of commands.

A point in time is milliseconds since 1970, or ISO 8601 (local time unless it has a zone); a duration is ISO 8601, such
as PT1H30M.
"""

import re
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


_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


def parse_duration(text: str) -> int:
    """Milliseconds; ValueError for anything that is not days, hours, minutes and seconds."""
    found = _DURATION.fullmatch(text.upper())
    if found is None or not any(found.groups()):
        raise ValueError(text)
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return round(1000 * (86_400 * days + 3600 * hours + 60 * minutes + seconds))


class Duration(click.ParamType[int]):
    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_duration(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a duration; write PT1H30M for an hour and a half, P7D for a week", param, ctx)
