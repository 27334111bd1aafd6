"""Rules between broker settings, mostly that one may not be smaller than another.

They are checked for static settings, and again before a dynamic change is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping

from quire.config.allowed import Value
from quire.config.errors import ConfigError
from quire.config.units import MIB

_NOT_ABOVE = (
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    *(
        pair
        for kind in ("consumer", "share", "streams")
        for what in ("session.timeout", "heartbeat.interval", "assignment.interval")
        for pair in (
            (f"group.{kind}.min.{what}.ms", f"group.{kind}.{what}.ms"),
            (f"group.{kind}.{what}.ms", f"group.{kind}.max.{what}.ms"),
        )
    ),
    *((f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms") for kind in ("consumer", "share")),
)

_TIMES = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
)


def check_rules(values: Mapping[str, Value]) -> None:
    for low, high in _NOT_ABOVE:
        if _number(values, low) > _number(values, high):
            raise ConfigError(
                low, f"{low}={values[low]} is above {high}={values[high]}: lower the first or raise the second."
            )
    _check_retention(values)
    roll = _first_set(values, _TIMES[1])
    if _number(values, roll) < 1:
        raise ConfigError(roll, f"{roll}={values[roll]} is not allowed: it must be at least 1.")
    queued = _number(values, "queued.max.request.bytes")
    if 0 <= queued < _number(values, "socket.request.max.bytes"):
        raise ConfigError(
            "queued.max.request.bytes",
            f"queued.max.request.bytes={queued:.0f} is not allowed: it must hold a request of "
            f"socket.request.max.bytes={values['socket.request.max.bytes']}, or be -1.",
        )
    if _number(values, "log.cleaner.dedupe.buffer.size") <= _number(values, "log.cleaner.threads") * MIB:
        raise ConfigError(
            "log.cleaner.dedupe.buffer.size",
            "log.cleaner.dedupe.buffer.size is too small: it must be more than 1048576 for each of "
            "log.cleaner.threads.",
        )


def _check_retention(values: Mapping[str, Value]) -> None:
    key = _first_set(values, _TIMES[0])
    if values[key] == 0:
        raise ConfigError(key, f"{key}=0 is not allowed: it must be at least 1, or -1 to keep records forever.")


def _first_set(values: Mapping[str, Value], names: tuple[str, ...]) -> str:
    return next(name for name in names if values[name] is not None)


def _number(values: Mapping[str, Value], key: str) -> float:
    value = values[key]
    assert isinstance(value, int | float), key
    return value
