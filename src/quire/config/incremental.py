"""What an incremental change (KIP-339) makes of a setting: set, delete, or add to and take from a list."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from quire.config.errors import ConfigError
from quire.config.key import ConfigKey, ConfigType
from quire.config.layers import find_key


class Operation(IntEnum):
    """The numbers are those of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def changed_value(
    keys: Mapping[str, ConfigKey], name: str, operation: Operation, value: str | None, current: str | None
) -> str | None:
    """The setting's text afterwards, not yet validated; None where it is no longer set.

    `current` is what is set for the resource itself; a list that is not set starts from its default.
    """
    key = find_key(keys, name, value)
    if operation is Operation.DELETE:
        return None
    if value is None:
        raise ConfigError(name, f"{name} has no value: give it one, or delete it to have the default.")
    if operation is Operation.SET:
        return value
    if key.type is not ConfigType.LIST:
        raise ConfigError(name, f"{name} is not a list: set it instead of adding to it or taking from it.")
    before = key.default if current is None else _words(current)
    assert before is None or isinstance(before, tuple)
    if operation is Operation.APPEND:
        return ",".join(dict.fromkeys((*(before or ()), *_words(value))))
    return ",".join(word for word in before or () if word not in _words(value))


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
