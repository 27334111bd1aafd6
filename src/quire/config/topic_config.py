"""A topic's configuration: its own overrides above the broker's settings above Kafka's defaults.

`validate_topic_configs` checks overrides before they are committed (CreateTopics, AlterConfigs). A `TopicConfig` has
the values in effect; create a new one when the overrides change, or when `BrokerConfig` reports a change.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quire.config.allowed import Value
from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError
from quire.config.layers import find_key
from quire.config.topic_keys import TOPIC_KEYS
from quire.config.typed_values import TypedValues

if TYPE_CHECKING:
    from quire.config.sources import ConfigEntry

logger = logging.getLogger("quire.config")

_REFUSED = dict.fromkeys(
    (
        "local.retention.bytes",
        "local.retention.ms",
        "remote.storage.enable",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
    ),
    "Quire has no tiered storage, leave it out",
)


def validate_topic_configs(overrides: Mapping[str, str | None], broker: BrokerConfig | None = None) -> None:
    """Raises ConfigError for the first override that is unknown, not allowed, or conflicts with another.

    With a `broker`, overrides are also checked against the broker's settings.
    """
    values: dict[str, Value] = dict(broker.topic_defaults()) if broker else _kafka_defaults()
    for name, text in overrides.items():
        key = find_key(TOPIC_KEYS, name)
        if text is None:
            raise ConfigError(name, f"{name} has no value: set one, or leave it out to use the default.")
        values[name] = value = key.parse(text)
        if name in _REFUSED and value != key.default:
            raise ConfigError(name, f"{name}={text} is not supported: {_REFUSED[name]}.")
    shortest, longest = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    assert isinstance(shortest, int)
    assert isinstance(longest, int)
    if shortest > longest:
        raise ConfigError(
            "min.compaction.lag.ms",
            f"min.compaction.lag.ms={shortest} is above max.compaction.lag.ms={longest}: lower the first or raise the "
            "second.",
        )


class TopicConfig(TypedValues):
    __slots__ = ("_broker", "overrides")

    def __init__(self, overrides: Mapping[str, str], broker: BrokerConfig, *, cluster_wide: bool = False) -> None:
        """Overrides that are not valid here, because another version wrote them, are logged and ignored.

        With `cluster_wide` the dynamic settings of this one broker do not count.
        """
        self.overrides = dict(overrides)
        self._broker = broker
        super().__init__(dict(broker.cluster_topic_defaults() if cluster_wide else broker.topic_defaults()))
        for name, text in overrides.items():
            try:
                self._values[name] = find_key(TOPIC_KEYS, name).parse(text)
            except ConfigError as error:
                logger.error("a topic setting is ignored: %s", error)

    @property
    def segment_bytes(self) -> int:
        """segment.bytes, or Kafka's key for tests that need smaller segments than segment.bytes allows."""
        internal = self._values["internal.segment.bytes"]
        return internal if isinstance(internal, int) else self.get_int("segment.bytes")

    def describe(self, names: Sequence[str] | None = None) -> list[ConfigEntry]:
        """The topic's settings, for DescribeConfigs; unknown names are left out, as Kafka does."""
        from quire.config.describe import describe_topic_setting

        wanted = TOPIC_KEYS if names is None else [name for name in names if name in TOPIC_KEYS]
        return [
            describe_topic_setting(name, self._values[name], name in self.overrides, self._broker)
            for name in wanted
            if not TOPIC_KEYS[name].internal or name in self.overrides
        ]


def _kafka_defaults() -> dict[str, Value]:
    return {name: key.default for name, key in TOPIC_KEYS.items()}
