"""A topic's settings: which overrides are allowed, which value applies, and where it comes from."""

import logging

import pytest

from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError
from quire.config.sources import ConfigEntry, ConfigSource, Synonym
from quire.config.topic_config import TopicConfig, validate_topic_configs


def broker(**settings: str) -> BrokerConfig:
    return BrokerConfig.standalone({name.replace("_", "."): text for name, text in settings.items()})


def entry(topic: TopicConfig, name: str) -> ConfigEntry:
    (found,) = topic.describe([name])
    return found


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"cleanup.policy": ""},
        {"cleanup.policy": "compact, delete"},
        {"retention.bytes": "-2"},
        {"retention.ms": "-1"},
        {"compression.gzip.level": "-1"},
        {"compression.zstd.level": "0"},
        {"preallocate": " TRUE "},
        {"segment.ms": "+5"},
        {"leader.replication.throttled.replicas": "*"},
        {"leader.replication.throttled.replicas": "0:1,1:2"},
        {"follower.replication.throttled.replicas": ""},
        {"internal.segment.bytes": "10"},
        {"min.cleanable.dirty.ratio": "1"},
        {"local.retention.ms": "-2", "local.retention.bytes": "-2"},
        {"remote.storage.enable": "false"},
    ],
)
def test_kafka_accepts_these_overrides_and_so_does_quire(overrides: dict[str, str | None]) -> None:
    validate_topic_configs(overrides)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"cleanup.policy": "Delete"}, "one of compact, delete"),
        ({"cleanup.policy": ","}, "none of them empty"),
        ({"retention.ms": "-2"}, "at least -1"),
        ({"segment.bytes": "1048575"}, "at least 1048576"),
        ({"segment.bytes": "2147483648"}, "32 bits"),
        ({"compression.gzip.level": "0"}, "from 1 to 9, or -1"),
        ({"compression.lz4.level": "0"}, "from 1 to 17"),
        ({"compression.type": "none"}, "one of uncompressed, zstd"),
        ({"min.insync.replicas": "0"}, "at least 1"),
        ({"preallocate": "yes"}, "true or false"),
        ({"segment.ms": "5.0"}, "64 bits"),
        ({"message.timestamp.type": "createTime"}, "CreateTime, LogAppendTime"),
        ({"min.cleanable.dirty.ratio": "1.1"}, "from 0 to 1"),
        ({"flush.messages": "0"}, "at least 1"),
        ({"leader.replication.throttled.replicas": "none"}, "pairs like 0:1"),
        ({"leader.replication.throttled.replicas": "0:1,*"}, "pairs like 0:1"),
        ({"follower.replication.throttled.replicas": "0:1:2"}, "pairs like 0:1"),
        ({"follower.replication.throttled.replicas": "0:-1"}, "pairs like 0:1"),
        ({"follower.replication.throttled.replicas": "0:\u0661"}, "pairs like 0:1"),
        ({"follower.replication.throttled.replicas": "0:2147483648"}, "pairs like 0:1"),
        ({"follower.replication.throttled.replicas": "0:" + 5000 * "1"}, "pairs like 0:1"),
        ({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, "is above max.compaction.lag.ms=5"),
        ({"retention": "1"}, "not a setting"),
        ({"retention.m": "1"}, "perhaps retention.ms is meant"),
        ({"log.retention.hours": "1"}, "a setting of brokers, not of topics: perhaps retention.ms is meant"),
        ({"listeners": "x"}, "a setting of brokers, not of topics: remove it"),
        ({"segment.ms": None}, "has no value"),
        ({"remote.storage.enable": "true"}, "no tiered storage"),
        ({"local.retention.ms": "10"}, "no tiered storage"),
        ({"local.retention.bytes": "-1"}, "no tiered storage"),
    ],
)
def test_overrides_that_must_not_be_are_refused_in_a_sentence(overrides: dict[str, str | None], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate_topic_configs(overrides)
    assert words in caught.value.message
    assert caught.value.key in overrides
    assert caught.value.message.startswith(caught.value.key)


def test_overrides_are_held_against_the_brokers_settings_too() -> None:
    strict = broker(log_cleaner_max_compaction_lag_ms="100")
    validate_topic_configs({"min.compaction.lag.ms": "200"})
    with pytest.raises(ConfigError, match="above"):
        validate_topic_configs({"min.compaction.lag.ms": "200"}, strict)


def test_a_topic_without_overrides_has_the_brokers_settings() -> None:
    topic = TopicConfig({}, broker(log_segment_bytes="2000000", log_cleanup_policy="compact", message_max_bytes="5"))
    assert topic.get_int("segment.bytes") == topic.segment_bytes == 2000000
    assert topic.get_list("cleanup.policy") == ("compact",)
    assert topic.get_int("max.message.bytes") == 5
    assert topic.get_int("flush.ms") == 2**63 - 1
    assert topic.get_bool("preallocate") is False
    assert topic.get_float("min.cleanable.dirty.ratio") == 0.5
    assert topic.get_str("compression.type") == "producer"


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({}, 7 * 86_400_000),
        ({"log_retention_hours": "1"}, 3_600_000),
        ({"log_retention_hours": "1", "log_retention_minutes": "2"}, 120_000),
        ({"log_retention_hours": "1", "log_retention_minutes": "2", "log_retention_ms": "3"}, 3),
        ({"log_retention_hours": "-1"}, -1),
        ({"log_retention_ms": "-5"}, -1),
    ],
)
def test_retention_comes_from_the_finest_unit_that_is_set(settings: dict[str, str], retention_ms: int) -> None:
    assert TopicConfig({}, broker(**settings)).get_int("retention.ms") == retention_ms


def test_other_times_are_converted_too_and_special_values_kept() -> None:
    topic = TopicConfig({}, broker(log_roll_hours="2", log_roll_jitter_hours="1", log_flush_scheduler_interval_ms="9"))
    assert topic.get_int("segment.ms") == 7_200_000
    assert topic.get_int("segment.jitter.ms") == 3_600_000
    assert topic.get_int("flush.ms") == 9
    assert topic.get_int("local.retention.ms") == -2
    assert topic.get_int("retention.bytes") == -1


def test_overrides_win_and_tests_may_have_small_segments() -> None:
    topic = TopicConfig({"segment.bytes": "2000000", "retention.ms": "5"}, broker(log_retention_ms="7"))
    assert (topic.segment_bytes, topic.get_int("retention.ms")) == (2000000, 5)
    assert TopicConfig({"internal.segment.bytes": "500"}, broker()).segment_bytes == 500


def test_a_new_topic_config_sees_dynamic_broker_settings() -> None:
    node = broker()
    assert TopicConfig({}, node).get_int("max.message.bytes") == 1048588
    node.apply_dynamic({"message.max.bytes": "77"}, {})
    assert TopicConfig({}, node).get_int("max.message.bytes") == 77


def test_an_unknown_override_is_logged_and_ignored(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "quire.config"):
        topic = TopicConfig({"segment.bytes": "small", "future.key": "1"}, broker())
    assert topic.segment_bytes == 1 << 30
    assert len(caplog.records) == 2
    assert "future.key" not in [item.name for item in topic.describe()]


def test_a_described_override_precedes_the_brokers_synonyms() -> None:
    node = broker(log_retention_hours="24")
    node.apply_dynamic({"log.retention.ms": "1000"}, {})
    retention = entry(TopicConfig({"retention.ms": "5"}, node), "retention.ms")
    assert (retention.value, retention.source, retention.read_only) == ("5", ConfigSource.DYNAMIC_TOPIC, False)
    assert retention.synonyms == (
        Synonym("retention.ms", "5", ConfigSource.DYNAMIC_TOPIC),
        Synonym("log.retention.ms", "1000", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        Synonym("log.retention.hours", "24", ConfigSource.STATIC_BROKER),
        Synonym("log.retention.hours", "168", ConfigSource.DEFAULT),
    )


def test_a_described_default_shows_the_topics_value_and_the_brokers_source() -> None:
    inherited = entry(TopicConfig({}, broker(log_retention_hours="24")), "retention.ms")
    assert (inherited.value, inherited.source) == ("86400000", ConfigSource.STATIC_BROKER)
    throttle = entry(TopicConfig({}, broker()), "leader.replication.throttled.replicas")
    assert (throttle.value, throttle.source, throttle.synonyms) == ("", ConfigSource.DEFAULT, ())


def test_all_33_settings_are_described_and_the_internal_one_only_when_set() -> None:
    assert len(TopicConfig({}, broker()).describe()) == 33
    assert len(TopicConfig({"internal.segment.bytes": "9"}, broker()).describe()) == 34
    assert TopicConfig({}, broker()).describe(["unknown"]) == []
