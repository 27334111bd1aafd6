"""Which records to show: by key, by header, and by what is inside a JSON value.

A condition is a path, a comparison and a value: `user.age>30`, `status!=done`, `tags contains red`, `items.0.sku=A7`.
It is taken apart by hand and compared by type; nothing of it is ever evaluated.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from quire.protocol.records import Record

_CONDITION = re.compile(r"\s*(?P<path>.+?)\s*(?P<sign>!=|<=|>=|=|<|>|\scontains\s)\s*(?P<value>.*)", re.DOTALL)
_ABSENT = object()

Filter = Callable[[Record], bool]


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
    return Condition(path, match["sign"].strip(), match["value"].strip())


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
    """Numbers as numbers, text as text (so that ISO times compare); other things have no order."""
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


def build_filter(keys: Sequence[str], headers: Sequence[str], conditions: Sequence[Condition]) -> Filter | None:
    """All of them must hold (any one of several keys); None if there is nothing to check."""
    checks: list[Filter] = []
    if keys:
        wanted = {key.encode() for key in keys}
        checks.append(lambda record: record.key in wanted)
    checks.extend(_header_filter(header) for header in headers)
    if conditions:
        checks.append(lambda record: _json_holds(record, conditions))
    if not checks:
        return None
    return lambda record: all(check(record) for check in checks)


def _header_filter(text: str) -> Filter:
    """`name=value`, or `name` alone for any value."""
    name, separator, value = text.partition("=")
    if not separator:
        return lambda record: any(header == name for header, _ in record.headers)
    wanted = (name, value.encode())
    return lambda record: wanted in record.headers


def _json_holds(record: Record, conditions: Sequence[Condition]) -> bool:
    if record.value is None:
        return False
    try:
        document = json.loads(record.value)
    except ValueError:
        return False
    return all(condition.holds(document) for condition in conditions)
