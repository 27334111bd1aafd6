"""Incremental changes of a setting (KIP-339): set, delete, append to a list or subtract from it."""

from __future__ import annotations

from collections.abc import Mapping

from quire.config.errors import ConfigError
from quire.config.key import ConfigKey, ConfigType
from quire.config.layers import find_key
from quire.protocol.alter_config_op import AlterConfigOp


def changed_value(
    keys: Mapping[str, ConfigKey], name: str, operation: AlterConfigOp, value: str | None, current: str | None
) -> str | None:
    """The setting's new text, not yet validated; None if it is deleted.

    `current` is the value of the resource itself; a list that is not set starts from its default.
    """
    key = find_key(keys, name)
    if operation is AlterConfigOp.DELETE:
        return None
    if value is None:
        raise ConfigError(name, f"{name} has no value: set one, or delete it to use the default.")
    if operation is AlterConfigOp.SET:
        return value
    if key.type is not ConfigType.LIST:
        raise ConfigError(name, f"{name} is not a list: set it instead of appending to it or subtracting from it.")
    before = key.default if current is None else _words(current)
    assert before is None or isinstance(before, tuple)
    if operation is AlterConfigOp.APPEND:
        return ",".join(dict.fromkeys((*(before or ()), *_words(value))))
    return ",".join(word for word in before or () if word not in _words(value))


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
