"""Which node configurations are valid. Most expectations are the answers of Apache Kafka 4.3.1."""

import pytest

from quire.config.broker_config import BrokerConfig
from quire.config.broker_keys import BROKER_KEYS
from quire.config.errors import ConfigError
from quire.config.listeners import Listener
from quire.config.topology import Topology, Voter, topology_of

BASE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
}
MAP = "listener.security.protocol.map"


def topology(changes: dict[str, str | None]) -> Topology:
    """The topology alone, without the check for features that Quire does not support yet."""
    settings = {name: text for name, text in {**BASE, **changes}.items() if text is not None}
    values = {name: key.default for name, key in BROKER_KEYS.items()}
    values.update({name: BROKER_KEYS[name].parse(text) for name, text in settings.items()})
    return topology_of(values, settings.keys(), "this.host")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"process.roles": "broker", "listeners": "PLAINTEXT://:9092"},
        {"process.roles": "controller", "listeners": "CONTROLLER://:9093"},
        {"controller.quorum.bootstrap.servers": None, "controller.quorum.voters": "1@localhost:9093"},
        {"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"},
        {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"},
        {"listeners": "plaintext://:9092,controller://:9093"},
        {
            "listeners": "EXTERNAL://:9092,CONTROLLER://:9093",
            MAP: "EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "EXTERNAL",
        },
        {"advertised.listeners": "PLAINTEXT://broker.example:9092"},
        {"advertised.listeners": "PLAINTEXT://a:9092,CONTROLLER://a:9093"},
        {"listeners": "PLAINTEXT://[::1]:9092,CONTROLLER://127.0.0.1:9093"},
        {
            "listeners": "PLAINTEXT://127.0.0.1:9092,SECOND://[::1]:9092,CONTROLLER://127.0.0.1:9093",
            MAP: "PLAINTEXT:PLAINTEXT,SECOND:PLAINTEXT,CONTROLLER:PLAINTEXT",
        },
    ],
)
def test_kafka_accepts_it_and_so_does_quire(changes: dict[str, str | None]) -> None:
    topology(changes)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"process.roles": None}, "process.roles"),
        ({"process.roles": "zookeeper"}, "process.roles"),
        ({"process.roles": ""}, "process.roles"),
        ({"node.id": None}, "node.id"),
        ({"node.id": "-1"}, "node.id"),
        ({"process.roles": "broker"}, "listeners"),
        ({"process.roles": "controller"}, "listeners"),
        ({"controller.quorum.bootstrap.servers": None}, "controller.quorum.bootstrap.servers"),
        ({"controller.quorum.voters": "2@localhost:9093"}, "controller.quorum.voters"),
        ({"controller.quorum.voters": "nonsense"}, "controller.quorum.voters"),
        (
            {"process.roles": "broker", "listeners": "PLAINTEXT://:1", "controller.quorum.voters": "1@h:2"},
            "controller.quorum.voters",
        ),
        ({"controller.listener.names": None}, "controller.listener.names"),
        ({"controller.listener.names": "OTHER"}, "listeners"),
        ({"listeners": "PLAINTEXT://127.0.0.1:9092"}, "listeners"),
        ({"listeners": "CONTROLLER://127.0.0.1:9092"}, "listeners"),
        ({"listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9092"}, "listeners"),
        ({"listeners": "PLAINTEXT://:9092,PLAINTEXT://:9094,CONTROLLER://:9093"}, "listeners"),
        ({"listeners": "PLAINTEXT://:99999,CONTROLLER://:9093"}, "listeners"),
        ({"listeners": "nonsense"}, "listeners"),
        ({"listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093"}, "advertised.listeners"),
        ({"listeners": "EXTERNAL://:9092,CONTROLLER://:9093"}, "listeners"),
        (
            {
                "listeners": "EXTERNAL://:9092,CONTROLLER://:9093",
                MAP: "EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
            },
            "inter.broker.listener.name",
        ),
        ({"listeners": "EXTERNAL://:9092,CONTROLLER://:9093", MAP: "EXTERNAL:PLAINTEXT"}, "listeners"),
        ({MAP: "PLAINTEXT:CLEARTEXT"}, MAP),
        ({MAP: "PLAINTEXT:PLAINTEXT,plaintext:SSL"}, MAP),
        ({"inter.broker.listener.name": "CONTROLLER"}, "inter.broker.listener.name"),
        ({"inter.broker.listener.name": "NOPE"}, "inter.broker.listener.name"),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "inter.broker.listener.name",
        ),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "advertised.listeners"),
        ({"advertised.listeners": "CONTROLLER://broker.example:9093"}, "advertised.listeners"),
        ({"advertised.listeners": "OTHER://a:9092"}, "advertised.listeners"),
        ({"advertised.listeners": "SSL://a:9092"}, "advertised.listeners"),
        ({"advertised.listeners": "PLAINTEXT://a:9092,PLAINTEXT://b:9092"}, "advertised.listeners"),
        ({"advertised.listeners": ""}, "advertised.listeners"),
    ],
)
def test_kafka_refuses_it_and_so_does_quire_naming_the_key_to_change(changes: dict[str, str | None], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        topology(changes)
    assert caught.value.key == key
    assert key in caught.value.message
    assert caught.value.message.count(".\n") == 0
    assert caught.value.message.endswith(".")


def test_listeners_are_sorted_by_whom_they_are_for() -> None:
    found = topology({"listeners": "plaintext://:9092,CONTROLLER://[::1]:9093", "controller.quorum.voters": "1@h:9093"})
    assert found.broker_listeners == (Listener("PLAINTEXT", "", 9092, "PLAINTEXT"),)
    assert found.controller_listeners == (Listener("CONTROLLER", "::1", 9093, "PLAINTEXT"),)
    assert found.advertised_listeners == (Listener("PLAINTEXT", "this.host", 9092, "PLAINTEXT"),)
    assert found.inter_broker_listener == "PLAINTEXT"
    assert found.voters == (Voter(1, "h", 9093),)
    assert str(found.controller_listeners[0]) == "CONTROLLER://[::1]:9093"


def test_broker_id_is_an_old_name_of_node_id() -> None:
    settings = {**BASE, "broker.id": "3"}
    with pytest.raises(ConfigError, match=r"broker\.id=3 differs from node\.id=1"):
        BrokerConfig(settings)
    del settings["node.id"]
    assert BrokerConfig(settings).node_id == 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"listeners": "SSL://:9092,CONTROLLER://:9093", "inter.broker.listener.name": "SSL"}, "SSL"),
        ({"listeners": "SSL://:9092,CONTROLLER://:9093"}, "neither TLS nor SASL"),
        ({"remote.log.storage.system.enable": "true"}, "no tiered storage"),
        ({"log.local.retention.ms": "1000"}, "no tiered storage"),
        ({"log.local.retention.bytes": "-1"}, "no tiered storage"),
        ({"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}, "who may do what"),
        ({"config.providers": "file"}, "settings from elsewhere"),
        ({"create.topic.policy.class.name": "com.example.Policy"}, "Java classes"),
    ],
)
def test_unsupported_topologies_are_refused_and_not_ignored(changes: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match="not supported") as caught:
        BrokerConfig({**BASE, **changes})
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("changes", "alone"),
    [
        ({}, True),
        ({"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}, True),
        (
            {"controller.quorum.bootstrap.servers": "this.host:9093", "listeners": "PLAINTEXT://:1,CONTROLLER://:9093"},
            True,
        ),
        (
            {"controller.quorum.bootstrap.servers": "other:9093", "listeners": "PLAINTEXT://:1,CONTROLLER://:9093"},
            False,
        ),
        (
            {
                "controller.quorum.bootstrap.servers": "proxy:1",
                "advertised.listeners": "PLAINTEXT://proxy:2,CONTROLLER://proxy:1",
            },
            True,
        ),
        ({"controller.quorum.bootstrap.servers": "localhost:9093,localhost:9193"}, False),
        ({"controller.quorum.bootstrap.servers": "localhost:9193"}, False),
        ({"controller.quorum.voters": "1@localhost:9093"}, True),
        ({"controller.quorum.voters": "1@localhost:9093,2@localhost:9193"}, False),
        ({"process.roles": "broker", "listeners": "PLAINTEXT://:9092"}, False),
    ],
)
def test_a_node_is_alone_if_its_settings_name_no_other_controller(changes: dict[str, str | None], alone: bool) -> None:
    assert topology(changes).is_alone is alone


def test_other_nodes_reach_a_controller_where_it_says() -> None:
    def advertised(changes: dict[str, str | None]) -> list[str]:
        return [str(listener) for listener in topology(changes).advertised_controller_listeners]

    assert advertised({}) == ["CONTROLLER://127.0.0.1:9093"]
    assert advertised({"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}) == ["CONTROLLER://this.host:9093"]
    assert advertised({"advertised.listeners": "PLAINTEXT://a:1,CONTROLLER://a:2"}) == ["CONTROLLER://a:2"]
    assert advertised({"process.roles": "broker", "listeners": "PLAINTEXT://:9092"}) == []
