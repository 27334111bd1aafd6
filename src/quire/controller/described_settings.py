"""The settings of new topics, as CreateTopics tells them (KIP-525).

To describe all settings of a topic takes far longer than to create it, and topics differ only in those that they
override. So the others are described once for a request.
"""

from quire.config.broker_config import BrokerConfig
from quire.config.sources import ConfigEntry
from quire.config.topic_config import TopicConfig
from quire.protocol.messages.create_topics import CreatableTopicConfigs


class DescribedSettings:
    """Lives for one request: settings that change later are not in it."""

    __slots__ = ("_config", "_inherited")

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._inherited: dict[str, CreatableTopicConfigs] | None = None

    def of(self, overrides: dict[str, str]) -> list[CreatableTopicConfigs]:
        """Topics share the descriptions: they must not be changed."""
        if self._inherited is None:
            self._inherited = self._describe({}, None)
        own = self._describe(overrides, list(overrides)) if overrides else {}
        return list((self._inherited | own).values())

    def _describe(self, overrides: dict[str, str], names: list[str] | None) -> dict[str, CreatableTopicConfigs]:
        return {entry.name: _described(entry) for entry in TopicConfig(overrides, self._config).describe(names)}


def _described(entry: ConfigEntry) -> CreatableTopicConfigs:
    return CreatableTopicConfigs(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
    )
