"""The settings of a consumer group (KIP-848), each of which overrides a `group.consumer.*` setting of the broker.

`validate_group_configs` checks them before they are committed (IncrementalAlterConfigs); `group_setting` is the value
in effect. If the broker's bounds have changed since, that is the nearest value that they allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quire.config.allowed import at_least
from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError
from quire.config.key import INT, ConfigKey, table
from quire.config.layers import find_key

if TYPE_CHECKING:
    from quire.config.sources import ConfigEntry

SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"

GROUP_KEYS = table(
    ConfigKey(ASSIGNMENT_INTERVAL, INT, 1000, at_least(0)),
    ConfigKey(HEARTBEAT_INTERVAL, INT, 5000, at_least(1)),
    ConfigKey(SESSION_TIMEOUT, INT, 45_000, at_least(1)),
)
_OTHER_KINDS = ("share.", "streams.")


def of_broker(name: str, bound: str = "") -> str:
    """`group.consumer.session.timeout.ms`, or with a bound `group.consumer.min.session.timeout.ms`."""
    return f"group.consumer.{bound}{name.removeprefix('consumer.')}"


_OF_BROKER = {name: of_broker(name) for name in GROUP_KEYS}


def group_setting(own: Mapping[str, str], name: str, broker: BrokerConfig) -> int:
    """The value in effect for a group with these settings."""
    value = own_value(own, name) if own else None
    if value is None:
        return broker.get_int(_OF_BROKER[name])
    least, most = _bounds(name, broker)
    return max(least, min(value, most))


def own_value(own: Mapping[str, str], name: str) -> int | None:
    """None if it is not set, or if another version wrote a value that is not valid here."""
    try:
        value = GROUP_KEYS[name].parse(own[name])
    except (KeyError, ConfigError):
        return None
    assert isinstance(value, int)
    return value


def validate_group_configs(own: Mapping[str, str], broker: BrokerConfig) -> None:
    """Raises ConfigError for the first setting that is unknown, out of bounds, or conflicts with another."""
    for name, text in own.items():
        if name.startswith(_OTHER_KINDS):
            raise ConfigError(name, f"{name}={text} is not supported: Quire has no share groups and no streams groups.")
        value = find_key(GROUP_KEYS, name).parse(text)
        assert isinstance(value, int)
        least, most = _bounds(name, broker)
        if not least <= value <= most:
            raise ConfigError(
                name,
                f"{name}={text} is not allowed: it must be from {least} ({of_broker(name, 'min.')}) "
                f"to {most} ({of_broker(name, 'max.')}).",
            )
    session_ms, heartbeat_ms = (group_setting(own, name, broker) for name in (SESSION_TIMEOUT, HEARTBEAT_INTERVAL))
    if session_ms <= heartbeat_ms:
        raise ConfigError(
            SESSION_TIMEOUT,
            f"{SESSION_TIMEOUT}={session_ms} must be more than {HEARTBEAT_INTERVAL}={heartbeat_ms}: "
            "set them together, or lower the second first.",
        )


def describe_group(own: Mapping[str, str], broker: BrokerConfig, names: Sequence[str] | None) -> list[ConfigEntry]:
    """For DescribeConfigs; unknown names are left out, as Kafka does."""
    from quire.config.describe import describe_group_setting

    wanted = GROUP_KEYS if names is None else [name for name in names if name in GROUP_KEYS]
    return [describe_group_setting(GROUP_KEYS[name], own_value(own, name), _OF_BROKER[name], broker) for name in wanted]


def _bounds(name: str, broker: BrokerConfig) -> tuple[int, int]:
    return broker.get_int(of_broker(name, "min.")), broker.get_int(of_broker(name, "max."))
