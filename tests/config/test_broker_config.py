"""A broker's settings: layers, sources, rules between them, and changes while it runs."""

import logging

import pytest

from quire.config.broker_config import BrokerConfig
from quire.config.broker_keys import BROKER_KEYS
from quire.config.errors import ConfigError
from quire.config.key import Update
from quire.config.sources import ConfigEntry, ConfigSource, Synonym
from quire.config.unsupported import can_change


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig.standalone({name.replace("_", "."): text for name, text in settings.items()})


def entry(broker: BrokerConfig, name: str) -> ConfigEntry:
    (found,) = broker.describe([name])
    return found


def test_values_are_read_with_their_type() -> None:
    broker = config(
        num_partitions="4",
        auto_create_topics_enable="false",
        log_cleaner_io_buffer_load_factor="0.7",
        compression_type="zstd",
        log_cleanup_policy="compact,delete",
    )
    assert broker.get_int("num.partitions") == 4
    assert broker.get_bool("auto.create.topics.enable") is False
    assert broker.get_float("log.cleaner.io.buffer.load.factor") == 0.7
    assert broker.get_str("compression.type") == "zstd"
    assert broker.get_list("log.cleanup.policy") == ("compact", "delete")
    assert broker.get_list("early.start.listeners") == ()
    assert broker.get("log.retention.ms") is None
    with pytest.raises(AssertionError, match=r"num\.partitions"):
        broker.get_str("num.partitions")
    with pytest.raises(KeyError, match=r"no\.such\.key"):
        broker.get_int("no.such.key")


def test_data_directories_fall_back_to_the_single_one() -> None:
    assert config(log_dir="/one").log_dirs == ("/one",)
    both = config(log_dir="/one", log_dirs="/a, /b")
    assert both.log_dirs == ("/a", "/b")
    assert both.metadata_log_dir == "/a"
    assert config(log_dirs="/a,/b", metadata_log_dir="/m").metadata_log_dir == "/m"


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"log_retention_ms": "0"}, "log.retention.ms"),
        ({"log_retention_hours": "0"}, "log.retention.hours"),
        ({"log_roll_ms": "0"}, "log.roll.ms"),
        ({"replica_fetch_wait_max_ms": "60000"}, "replica.fetch.wait.max.ms"),
        ({"queued_max_request_bytes": "5"}, "queued.max.request.bytes"),
        ({"log_cleaner_dedupe_buffer_size": "100"}, "log.cleaner.dedupe.buffer.size"),
        ({"group_consumer_session_timeout_ms": "1"}, "group.consumer.min.session.timeout.ms"),
        ({"group_min_session_timeout_ms": "1800001"}, "group.min.session.timeout.ms"),
    ],
)
def test_settings_that_contradict_each_other_are_refused_as_by_kafka(settings: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(**settings)
    assert caught.value.key == key


def test_a_described_setting_tells_its_source_and_what_it_would_fall_back_to() -> None:
    broker = config(num_partitions="4")
    assert entry(broker, "num.partitions") == ConfigEntry(
        "num.partitions",
        "4",
        ConfigSource.STATIC_BROKER,
        True,
        False,
        entry(broker, "num.io.threads").type,
        (
            Synonym("num.partitions", "4", ConfigSource.STATIC_BROKER),
            Synonym("num.partitions", "1", ConfigSource.DEFAULT),
        ),
    )
    untouched = entry(broker, "num.io.threads")
    assert (untouched.source, untouched.read_only, untouched.is_default) == (ConfigSource.DEFAULT, False, True)
    assert entry(broker, "log.dirs").documentation == "The folders that data is kept in."
    assert entry(broker, "num.io.threads").documentation is None


def test_settings_in_other_units_are_synonyms_in_the_order_in_which_they_count() -> None:
    broker = config(log_retention_minutes="5")
    retention = entry(broker, "log.retention.ms")
    assert retention.value is None
    assert retention.synonyms == (
        Synonym("log.retention.minutes", "5", ConfigSource.STATIC_BROKER),
        Synonym("log.retention.hours", "168", ConfigSource.DEFAULT),
    )
    assert [s.name for s in entry(broker, "log.flush.interval.ms").synonyms] == ["log.flush.scheduler.interval.ms"]
    scheduler = entry(broker, "log.flush.scheduler.interval.ms")
    assert [s.name for s in scheduler.synonyms] == ["log.flush.scheduler.interval.ms"]


def test_everything_is_described_except_what_kafka_keeps_for_its_tests() -> None:
    names = [item.name for item in config().describe()]
    assert len(names) == 346
    assert "log.initial.task.delay.ms" not in names
    assert "log.initial.task.delay.ms" in [item.name for item in config(log_initial_task_delay_ms="1").describe()]
    assert config().describe(["num.partitions", "unknown"])[0].name == "num.partitions"
    assert config().describe([]) == []


def test_passwords_are_described_without_their_value() -> None:
    password = entry(config(ssl_key_password="hunter2"), "ssl.key.password")
    assert (password.value, password.sensitive, password.synonyms[0].value) == (None, True, None)
    assert password.source is ConfigSource.STATIC_BROKER


def test_dynamic_settings_take_effect_in_order_and_are_taken_back() -> None:
    broker = config(message_max_bytes="1000")
    heard: list[list[str]] = []
    broker.when_changed(heard.append)
    assert broker.apply_dynamic({"message.max.bytes": "2000", "log.retention.ms": "5"}, {}) == [
        "log.retention.ms",
        "message.max.bytes",
    ]
    assert broker.get_int("message.max.bytes") == 2000
    assert broker.apply_dynamic({"message.max.bytes": "2000"}, {"message.max.bytes": "3000"}) == [
        "log.retention.ms",
        "message.max.bytes",
    ]
    assert broker.get_int("message.max.bytes") == 3000
    assert [s.source for s in entry(broker, "message.max.bytes").synonyms] == [
        ConfigSource.DYNAMIC_BROKER,
        ConfigSource.DYNAMIC_DEFAULT_BROKER,
        ConfigSource.STATIC_BROKER,
        ConfigSource.DEFAULT,
    ]
    assert broker.apply_dynamic({}, {}) == ["message.max.bytes"]
    assert broker.get_int("message.max.bytes") == 1000
    assert broker.apply_dynamic({}, {}) == []
    assert len(heard) == 3, "no listener is called when nothing changed"


def test_the_clusters_defaults_are_described_on_their_own() -> None:
    broker = config(message_max_bytes="1000")
    broker.apply_dynamic({"message.max.bytes": "2000"}, {"message.max.bytes": "3000", "log.retention.ms": "5"})
    (only,) = broker.describe_cluster_default()
    assert (only.name, only.value, only.source) == (
        "message.max.bytes",
        "2000",
        ConfigSource.DYNAMIC_DEFAULT_BROKER,
    )
    assert [s.source for s in only.synonyms] == [ConfigSource.DYNAMIC_DEFAULT_BROKER]
    assert broker.describe_cluster_default(["log.retention.ms"]) == []


def test_an_unknown_dynamic_setting_is_logged_and_ignored(caplog: pytest.LogCaptureFixture) -> None:
    broker = config()
    with caplog.at_level(logging.ERROR, "quire.config"):
        changed = broker.apply_dynamic({"message.max.bytes": "many", "new.in.kafka.9": "1", "num.io.threads": "9"}, {})
    assert changed == ["num.io.threads"]
    assert len(caplog.records) == 2


def test_every_changeable_setting_can_change_for_one_broker_and_for_all() -> None:
    """`validate_dynamic` treats them alike: all settings that Kafka allows for a single broker are fixed in Quire."""
    changeable = [key for key in BROKER_KEYS.values() if can_change(key)]
    assert {key.update for key in changeable} == {Update.CLUSTER_WIDE}


def test_a_fixed_setting_that_kafka_has_stored_can_be_removed() -> None:
    broker = config()
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location cannot be changed while a broker runs"):
        broker.validate_dynamic({"ssl.keystore.location": None}, per_broker=True)
    broker.apply_dynamic({}, {"ssl.keystore.location": "/a"})
    broker.validate_dynamic({"ssl.keystore.location": None}, per_broker=True)


@pytest.mark.parametrize(
    ("changes", "per_broker", "words"),
    [
        ({"num.partitions": "2"}, True, "restart"),
        ({"cordoned.log.dirs": "/a"}, False, "not supported"),
        ({"log.local.retention.ms": "5"}, True, "no tiered storage"),
        ({"log.local.retention.ms": "-2"}, True, "restart"),
        ({"listeners": "PLAINTEXT://:1"}, True, "restart"),
        ({"ssl.keystore.location": "/a"}, True, "restart"),
        ({"message.max.bytes": "-1"}, False, "at least 0"),
        ({"log.retention.ms": "0"}, False, "at least 1, or -1"),
        ({"log.cleaner.threads": "1000"}, True, "dedupe"),
        ({"mesage.max.bytes": "1"}, True, "perhaps message.max.bytes"),
        ({"no.such": None}, True, "not a setting"),
    ],
)
def test_a_dynamic_change_that_must_not_be_is_refused_before_it_is_committed(
    changes: dict[str, str | None], per_broker: bool, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        config().validate_dynamic(changes, per_broker=per_broker)
    assert words in caught.value.message


def test_a_dynamic_change_is_held_against_what_is_set_already() -> None:
    broker = config()
    broker.apply_dynamic({"log.cleaner.dedupe.buffer.size": "900000000"}, {})
    broker.validate_dynamic({"log.cleaner.threads": "500"}, per_broker=False)
    with pytest.raises(ConfigError, match="dedupe"):
        broker.validate_dynamic(
            {"log.cleaner.threads": "500", "log.cleaner.dedupe.buffer.size": None}, per_broker=False
        )
    assert broker.get_int("log.cleaner.threads") == 1, "validating changes nothing"


@pytest.mark.parametrize("value", ["abc", "10.0.0.1", "10.0.0.1:", ":5", "10.0.0.1:5,x"])
def test_limits_per_address_are_checked_before_they_apply(value: str) -> None:
    with pytest.raises(ConfigError, match="pairs like"):
        BrokerConfig.standalone({"max.connections.per.ip.overrides": value})


def test_a_listener_that_fails_on_a_changed_setting_does_not_stop_the_others() -> None:
    broker = config()
    seen: list[list[str]] = []

    def broken(_: list[str]) -> None:
        raise RuntimeError("a bug")

    broker.when_changed(broken)
    broker.when_changed(seen.append)
    broker.apply_dynamic({"message.max.bytes": "2000000"}, {})
    assert seen == [["message.max.bytes"]]
