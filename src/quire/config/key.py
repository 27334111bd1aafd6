"""One configuration key: its name, type, default, allowed values, and whether it can change while a node runs.

Values are Python values (lists are tuples, so that they can be shared), parsed and written exactly as in Kafka: 'TRUE'
is a boolean, ' 5 ' and '+5' are numbers, '5.0' and '1_000' are not.
"""

from __future__ import annotations

from enum import IntEnum

from quire.config.allowed import Allowed, Value
from quire.config.errors import ConfigError


class ConfigType(IntEnum):
    """The numbers are those of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Update(IntEnum):
    READ_ONLY = 0
    """Needs a restart."""
    PER_BROKER = 1
    """Can be changed for one running broker."""
    CLUSTER_WIDE = 2
    """Can be changed for one running broker or as the default of all."""


BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
SHORT = ConfigType.SHORT
LONG = ConfigType.LONG
DOUBLE = ConfigType.DOUBLE
LIST = ConfigType.LIST
CLASS = ConfigType.CLASS
PASSWORD = ConfigType.PASSWORD

READ_ONLY = Update.READ_ONLY
PER_BROKER = Update.PER_BROKER
CLUSTER_WIDE = Update.CLUSTER_WIDE

REQUIRED = None
"""The default of the three keys that Kafka requires: node.id, process.roles and controller.listener.names."""

_BITS = {SHORT: 15, INT: 31, LONG: 63}
_EXPECTED = {
    BOOLEAN: "true or false",
    SHORT: "a whole number of 16 bits",
    INT: "a whole number of 32 bits",
    LONG: "a whole number of 64 bits",
    DOUBLE: "a number",
    LIST: "words separated by commas, none of them empty",
}


class ConfigKey:
    __slots__ = ("allowed", "default", "internal", "name", "type", "update")

    def __init__(
        self,
        name: str,
        type: ConfigType,  # noqa: A002 - the tables read better with positions, and this is its name in Kafka
        default: Value,
        allowed: Allowed | None = None,
        update: Update = READ_ONLY,
        *,
        internal: bool = False,
    ) -> None:
        self.name = name
        self.type = type
        self.default = default
        self.allowed = allowed
        self.update = update
        self.internal = internal
        """Kafka's keys for tests: accepted, and shown only if they are set."""

    @property
    def sensitive(self) -> bool:
        return self.type is PASSWORD

    def parse(self, text: str) -> Value:
        """The value of `text`; ConfigError if this key does not allow it."""
        try:
            value = self._parse(text)
        except ValueError:
            raise self._refusal(text, _EXPECTED[self.type]) from None
        if self.allowed is not None and not self.allowed.check(value):
            raise self._refusal(text, self.allowed.text)
        return value

    def format(self, value: Value) -> str | None:
        """As Kafka writes it, in files and in DescribeConfigs; None for no value."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        if isinstance(value, float):
            return repr(value).replace("e+", "E").replace("e", "E")
        return str(value)

    def show(self, text: str) -> str:
        """`text` for error messages and logs."""
        return "[hidden]" if self.sensitive else text

    def _refusal(self, text: str, expected: str) -> ConfigError:
        return ConfigError(self.name, f"{self.name}={self.show(text)} is not allowed: it must be {expected}.")

    def _parse(self, text: str) -> Value:
        if self.type is PASSWORD:
            return text
        text = text.strip()
        if self.type in _BITS:
            return _whole_number(text, _BITS[self.type])
        if self.type is BOOLEAN:
            return _boolean(text)
        if self.type is DOUBLE:
            return _decimal_number(text)
        if self.type is LIST:
            return _list(text)
        return text

    def __repr__(self) -> str:
        return f"ConfigKey({self.name!r}, {self.type.name}, {self.default!r})"


def table(*keys: ConfigKey) -> dict[str, ConfigKey]:
    return {key.name: key for key in keys}


def _whole_number(text: str, bits: int) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError(text)
    value = int(text)
    if not -(1 << bits) <= value < 1 << bits:
        raise ValueError(text)
    return value


def _decimal_number(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _boolean(text: str) -> bool:
    lower = text.lower()
    if lower not in ("true", "false"):
        raise ValueError(text)
    return lower == "true"


def _list(text: str) -> tuple[str, ...]:
    if not text:
        return ()
    items = tuple(item.strip() for item in text.split(","))
    if not all(items):
        raise ValueError(text)
    return tuple(dict.fromkeys(items))
