"""Selects records by key, by header, and by conditions on JSON values.

A condition is a path, a comparison and a value: `user.age>30`, `status!=done`, `tags contains red`, `items.0.sku=A7`.
It is parsed by hand and compared by type; no part of it is evaluated as code.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from quire.protocol.records import Record

_CONDITION = re.compile(r"\s*(?P<path>.+?)\s*(?P<sign>!=|<=|>=|=|<|>|\scontains\s)\s*(?P<value>.*)", re.DOTALL)
_ABSENT = object()

_OPERATOR_CHARACTERS = ("=", "<", ">", "!")

Check = Callable[[Record], bool]


class InvalidConditionError(ValueError):
    pass


class Condition(NamedTuple):
    path: tuple[str, ...]
    sign: str
    value: str

    def holds(self, document: Any) -> bool:
        found = _look_up(document, self.path)
        if found is _ABSENT:
            return False
        if self.sign == "contains":
            return _contains(found, self.value)
        if self.sign in ("=", "!="):
            return _equals(found, self.value) == (self.sign == "=")
        return _ordered(found, self.sign, self.value)


def parse_condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise InvalidConditionError(
            f"{text!r} is not a condition; write path=value, or use !=, <, >, <=, >= or contains, as in user.age>30"
        )
    path = tuple(match["path"].split("."))
    if not all(path):
        raise InvalidConditionError(f"{match['path']!r} is not a path; write names with dots between, as in user.name")
    sign, value = match["sign"].strip(), match["value"].strip()
    if sign != "contains" and value.startswith(_OPERATOR_CHARACTERS):
        raise InvalidConditionError(
            f"{text!r} compares with {sign}{value[0]}; the comparisons are =, !=, <, >, <=, >= and contains"
        )
    return Condition(path, sign, value)


def _look_up(document: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if isinstance(document, dict):
            document = document.get(name, _ABSENT)
        elif isinstance(document, list) and name.isdigit() and int(name) < len(document):
            document = document[int(name)]
        else:
            return _ABSENT
        if document is _ABSENT:
            return _ABSENT
    return document


def _number(text: str) -> float | int | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _equals(found: Any, text: str) -> bool:
    if found is None or isinstance(found, bool):
        return json.dumps(found) == text
    if isinstance(found, int | float):
        return found == _number(text)
    if isinstance(found, str):
        return found == text
    return bool(json.dumps(found, separators=(",", ":")) == "".join(text.split()))


def _ordered(found: Any, sign: str, text: str) -> bool:
    """Numbers compare as numbers and text as text, so ISO times work; other types have no order."""
    wanted: Any = text
    if isinstance(found, int | float) and not isinstance(found, bool):
        wanted = _number(text)
    if wanted is None or isinstance(found, bool) or not isinstance(found, int | float | str):
        return False
    if sign == "<":
        return bool(found < wanted)
    if sign == ">":
        return bool(found > wanted)
    return bool(found <= wanted) if sign == "<=" else bool(found >= wanted)


def _contains(found: Any, text: str) -> bool:
    if isinstance(found, str | dict):
        return text in found
    return isinstance(found, list) and any(_equals(item, text) for item in found)


class Filter:
    """Decides whether to show a record, and counts the records that it has seen."""

    __slots__ = ("_checks", "_conditions", "matched", "not_json", "seen")

    def __init__(self, checks: Sequence[Check], conditions: Sequence[Condition]) -> None:
        self._checks = checks
        self._conditions = conditions
        self.seen = 0
        self.matched = 0
        self.not_json = 0

    def __call__(self, record: Record) -> bool:
        self.seen += 1
        matches = all(check(record) for check in self._checks) and (not self._conditions or self._json_holds(record))
        self.matched += matches
        return matches

    def _json_holds(self, record: Record) -> bool:
        try:
            document = json.loads(record.value or b"")
        except ValueError:
            self.not_json += 1
            return False
        return all(condition.holds(document) for condition in self._conditions)


def build_filter(keys: Sequence[str], headers: Sequence[str], conditions: Sequence[Condition]) -> Filter | None:
    """All conditions must hold (any one of several keys); None if there are none."""
    checks: list[Check] = []
    if keys:
        wanted = {key.encode() for key in keys}
        checks.append(lambda record: record.key in wanted)
    checks.extend(_header_check(header) for header in headers)
    return Filter(checks, conditions) if checks or conditions else None


def _header_check(text: str) -> Check:
    """`name=value`, or `name` alone for any value."""
    name, separator, value = text.partition("=")
    if not separator:
        return lambda record: any(header == name for header, _ in record.headers)
    wanted = (name, value.encode())
    return lambda record: wanted in record.headers
