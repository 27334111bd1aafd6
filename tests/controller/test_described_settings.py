"""The settings of new topics in the response to CreateTopics."""

from collections.abc import Sequence

import pytest

from quire.config.sources import ConfigEntry, ConfigSource
from quire.config.topic_config import TopicConfig
from quire.controller.described_settings import DescribedSettings
from quire.protocol.messages.create_topics import CreatableTopicConfigs
from tests.controller.images import CONFIG


def told(settings: list[CreatableTopicConfigs]) -> dict[str, tuple[str | None, int]]:
    return {each.name: (each.value, each.config_source) for each in settings}


def described(overrides: dict[str, str]) -> dict[str, tuple[str | None, int]]:
    """The result of DescribeConfigs for a topic with these settings."""
    return {each.name: (each.value, each.source) for each in TopicConfig(overrides, CONFIG).describe()}


@pytest.mark.parametrize(
    "overrides",
    [{}, {"retention.ms": "77"}, {"cleanup.policy": "compact", "segment.ms": "9"}, {"internal.segment.bytes": "4096"}],
)
def test_a_topic_is_described_as_describe_configs_does(overrides: dict[str, str]) -> None:
    settings = DescribedSettings(CONFIG)
    settings.of({"retention.ms": "1", "cleanup.policy": "delete"})
    assert told(settings.of(overrides)) == described(overrides)


def test_the_settings_of_one_topic_are_not_those_of_the_next() -> None:
    settings = DescribedSettings(CONFIG)
    assert told(settings.of({"retention.ms": "77"}))["retention.ms"] == ("77", ConfigSource.DYNAMIC_TOPIC)
    assert told(settings.of({}))["retention.ms"] == ("604800000", ConfigSource.DEFAULT)


def test_inherited_settings_are_described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = 0
    describe = TopicConfig.describe

    def counting(self: TopicConfig, names: Sequence[str] | None = None) -> list[ConfigEntry]:
        nonlocal entries
        found = describe(self, names)
        entries += len(found)
        return found

    monkeypatch.setattr(TopicConfig, "describe", counting)
    settings = DescribedSettings(CONFIG)
    inherited = len(settings.of({}))
    for number in range(100):
        settings.of({"retention.ms": str(number)})
        settings.of({})
    assert entries == inherited + 100
