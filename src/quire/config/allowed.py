"""The allowed values of a key, beyond its type: ranges, enumerations, lists of words.

Each rule says whether a value is allowed, and how the sentence "it must be ..." ends.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from quire.config.units import INT_MAX

Value: TypeAlias = "bool | int | float | str | tuple[str, ...] | None"


class Allowed(Protocol):
    def check(self, value: Value) -> bool: ...

    @property
    def text(self) -> str: ...


class Range:
    __slots__ = ("_also", "_high", "_low")

    def __init__(self, low: float, high: float | None = None, also: int | None = None) -> None:
        self._low = low
        self._high = high
        self._also = also

    def check(self, value: Value) -> bool:
        assert isinstance(value, int | float)
        return value == self._also or (value >= self._low and (self._high is None or value <= self._high))

    @property
    def text(self) -> str:
        limits = f"at least {self._low}" if self._high is None else f"from {self._low} to {self._high}"
        return limits if self._also is None else f"{limits}, or {self._also}"


class Words:
    """One of some words; for a list, every element is, and there is at least one unless `or_none`."""

    __slots__ = ("_any_case", "_or_none", "_words")

    def __init__(self, words: tuple[str, ...], *, any_case: bool = False, or_none: bool = False) -> None:
        self._words = words
        self._any_case = any_case
        self._or_none = or_none

    def check(self, value: Value) -> bool:
        if isinstance(value, tuple):
            return all(item in self._words for item in value) and (bool(value) or self._or_none)
        assert isinstance(value, str)
        return (value.upper() if self._any_case else value) in self._words

    @property
    def text(self) -> str:
        return "one of " + ", ".join(self._words)


class NotEmpty:
    __slots__ = ()

    text = "set to something"

    def check(self, value: Value) -> bool:
        return bool(value)


class ThrottledReplicas:
    """`*`, or partition:broker pairs."""

    __slots__ = ()

    text = "*, or pairs like 0:1,0:2 of partition and broker"

    def check(self, value: Value) -> bool:
        assert isinstance(value, tuple)
        return value in ((), ("*",)) or all(_is_pair(item) for item in value)


class AddressLimits:
    """Pairs of address and number."""

    __slots__ = ()

    text = "pairs like 10.0.0.1:20,host:5 of address and number"

    def check(self, value: Value) -> bool:
        assert isinstance(value, str)
        pairs = (item.strip().rpartition(":") for item in value.split(",") if item.strip())
        return all(address and number.isdecimal() for address, _, number in pairs)


def _is_pair(text: str) -> bool:
    partition, _, broker = text.partition(":")
    return _is_id(partition) and _is_id(broker)


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len(str(INT_MAX)) and int(text) <= INT_MAX


def at_least(low: int) -> Range:
    return Range(low)


def between(low: float, high: float, *, also: int | None = None) -> Range:
    return Range(low, high, also)


def one_of(*words: str) -> Words:
    return Words(words)


def one_of_any_case(*words: str) -> Words:
    return Words(words, any_case=True)


def any_of(*words: str) -> Words:
    """For lists that may be empty."""
    return Words(words, or_none=True)


NOT_EMPTY = NotEmpty()
THROTTLED_REPLICAS = ThrottledReplicas()
