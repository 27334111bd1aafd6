"""File, environment and --set override each other in this order, and errors name the source."""

import pytest

from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError
from quire.config.layers import from_assignments, from_environment


def test_later_layers_win() -> None:
    file = ("server.properties", "num.partitions=2\nmessage.max.bytes=100\nfetch.max.bytes=5000\n")
    environment = {"QUIRE_NUM_PARTITIONS": "3", "QUIRE_MESSAGE_MAX_BYTES": "200", "PATH": "/bin", "QUIREX": "1"}
    config = BrokerConfig.load(file=file, environment=environment, assignments=["num.partitions=4"])
    assert config.get_int("num.partitions") == 4
    assert config.get_int("message.max.bytes") == 200
    assert config.get_int("fetch.max.bytes") == 5000


def test_listen_and_data_are_above_everything_and_extras_below() -> None:
    config = BrokerConfig.load(
        file=("f", "listeners=PLAINTEXT://a:1\nlog.dir=/old\nlog.dirs=/older\nnum.partitions=2"),
        listen="127.0.0.1:7000",
        data_dir="/data",
        extra={"num.partitions": "9", "group.initial.rebalance.delay.ms": "0"},
    )
    assert [str(item) for item in config.topology.broker_listeners] == ["PLAINTEXT://127.0.0.1:7000"]
    assert config.log_dirs == ("/data",)
    assert config.get_int("num.partitions") == 2
    assert config.get_int("group.initial.rebalance.delay.ms") == 0


def test_an_own_setting_needs_the_prefix_only_once_in_the_environment() -> None:
    assert list(from_environment({"QUIRE_MAX_DECOMPRESSED_BYTES": "1"})) == ["quire.max.decompressed.bytes"]
    assert list(from_environment({"QUIRE_QUIRE_MAX_DECOMPRESSED_BYTES": "1"})) == ["quire.max.decompressed.bytes"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"file": ("server.properties", "\nlog.segment.bytes=12")},
            "server.properties line 2: log.segment.bytes=12 is not allowed: it must be at least 1048576.",
        ),
        (
            {"file": ("server.properties", "log.segment.byte=12")},
            "server.properties line 1: log.segment.byte is not a setting of Quire or Kafka 4.3: perhaps "
            "log.segment.bytes is meant.",
        ),
        (
            {"environment": {"QUIRE_NODE_ID": "one"}},
            "environment variable QUIRE_NODE_ID: node.id=one is not allowed: it must be a whole number of 32 bits.",
        ),
        (
            {"environment": {"QUIRE_HOME": "/opt"}},
            "environment variable QUIRE_HOME: home is not a setting of Quire or Kafka 4.3: remove it.",
        ),
        ({"assignments": ["num.partitions"]}, "--set num.partitions: write it as key=value."),
        (
            {"assignments": ["zookeeper.connect=localhost:2181"]},
            "--set zookeeper.connect is not a setting of Quire or Kafka 4.3: Kafka no longer uses "
            "ZooKeeper; remove it.",
        ),
        (
            {"assignments": ["cleanup.policy=compact"]},
            "--set cleanup.policy is a setting of topics, not of brokers: perhaps log.cleanup.policy is meant.",
        ),
        (
            {"file": ("server.properties", "listeners=nonsense")},
            "server.properties line 1: listeners=nonsense is not allowed: write each listener as NAME://HOST:PORT.",
        ),
    ],
)
def test_an_error_names_the_place_the_key_the_value_and_what_is_allowed(
    arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load(**arguments)  # type: ignore[arg-type]
    assert caught.value.message == message


def test_values_that_look_secret_are_not_repeated_even_under_an_unknown_name() -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load(assignments=["ssl.keystore.passwords=hunter2"])
    assert "hunter2" not in caught.value.message


def test_an_assignment_keeps_equals_signs_in_its_value() -> None:
    assert from_assignments(["broker.rack=a=b"])["broker.rack"].text == "a=b"
