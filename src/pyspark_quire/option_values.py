"""Parses the values of options. Every function raises ValueError with the end of a sentence that says what is valid.

Spark passes every option as a string; `options` has their names, and adds the name to the error.
"""

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from quire.client.offsets import EARLIEST, LATEST, TopicPartition

E = TypeVar("E", bound=str)

Offsets = int | dict[TopicPartition, int]
"""EARLIEST or LATEST everywhere, or an offset (or one of the two) for each partition."""


def text(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value.strip()


def boolean(value: str) -> bool:
    lower = value.strip().lower()
    if lower not in ("true", "false"):
        raise ValueError("must be true or false")
    return lower == "true"


def whole(value: str) -> int:
    """A number, 0 or above."""
    digits = value.strip()
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError("must be a whole number")
    return int(digits)


def positive(value: str) -> int:
    number = whole(value)
    if not number:
        raise ValueError("must be a whole number above 0")
    return number


def level(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        digits = value.strip().removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and lowest <= int(value) <= highest):
            raise ValueError(f"must be a whole number from {lowest} to {highest}")
        return int(value)

    return parse


def one_of(*choices: E) -> Callable[[str], E]:
    def parse(value: str) -> E:
        for choice in choices:
            if value.strip().lower() == choice.lower():
                return choice
        raise ValueError("must be " + " or ".join(choices))

    return parse


def names(value: str) -> list[str]:
    """Topics, separated by commas."""
    found = [part.strip() for part in value.split(",") if part.strip()]
    if not found:
        raise ValueError("must name at least one topic")
    return sorted(set(found))


def pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"must be a regular expression ({error})") from None
    return text(value)


def duration_ms(value: str) -> int:
    """`15m`, `30 s`, `500ms`, `1h`; a number alone is in milliseconds."""
    match = re.fullmatch(r"(\d+)\s*(ms|s|sec|m|min|h|d)?", value.strip().lower())
    if match is None:
        raise ValueError("must be a duration such as 500ms, 30s or 15m")
    factors = {"ms": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
    return int(match[1]) * factors[match[2] or "ms"]


def assignment(value: str) -> list[TopicPartition]:
    """`{"orders": [0, 1]}`"""
    example = 'must be partitions by topic, as in {"orders": [0, 1]}'
    found: list[TopicPartition] = []
    for topic, partitions in _object(value, example).items():
        if not isinstance(partitions, list) or not all(_is_number(number) and number >= 0 for number in partitions):
            raise ValueError(example)
        found += [TopicPartition(topic, number) for number in partitions]
    if not found:
        raise ValueError(example)
    return sorted(set(found))


def offsets(value: str) -> Offsets:
    """`earliest`, `latest`, or `{"orders": {"0": 23, "1": -2}}`, where -2 is the earliest and -1 the latest."""
    word = value.strip().lower()
    if word in ("earliest", "latest"):
        return EARLIEST if word == "earliest" else LATEST
    return _by_partition(
        value, 'must be earliest, latest or offsets by topic and partition, as in {"orders": {"0": 23}}', -2
    )


def timestamps(value: str) -> dict[TopicPartition, int]:
    """`{"orders": {"0": 1700000000000}}`, in milliseconds."""
    return _by_partition(value, 'must be milliseconds by topic and partition: {"orders": {"0": 1700000000000}}', 0)


def _by_partition(value: str, example: str, lowest: int) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, partitions in _object(value, example).items():
        if not isinstance(partitions, dict):
            raise ValueError(example)
        for partition, number in partitions.items():
            if not (partition.isascii() and partition.isdigit() and _is_number(number) and number >= lowest):
                raise ValueError(example)
            found[TopicPartition(topic, int(partition))] = number
    if not found:
        raise ValueError(example)
    return dict(sorted(found.items()))


def _object(value: str, example: str) -> dict[str, Any]:
    try:
        found = json.loads(value)
    except ValueError:
        raise ValueError(example) from None
    if not isinstance(found, dict):
        raise ValueError(example)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
