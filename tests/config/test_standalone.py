"""`quire start` without a file is a working node, and the user's own settings apply."""

import pytest

from quire.config.broker_config import BrokerConfig
from quire.config.errors import ConfigError
from quire.config.listeners import Listener
from quire.config.standalone import standalone_defaults

STOCK_SERVER_PROPERTIES = """
############################# Server Basics #############################
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,\\
  SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_nothing_given_is_a_node_on_its_own() -> None:
    config = BrokerConfig.load()
    topology = config.topology
    assert (config.node_id, topology.is_broker, topology.is_controller) == (1, True, True)
    assert topology.broker_listeners == (Listener("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT"),)
    assert topology.controller_listeners == (Listener("CONTROLLER", "127.0.0.1", 9093, "PLAINTEXT"),)
    assert topology.bootstrap_servers == ("127.0.0.1:9093",)
    assert config.log_dirs == ("./quire-data",)
    assert config.metadata_log_dir == "./quire-data"
    assert config.get_int("offsets.topic.replication.factor") == 1
    assert config.get_int("group.initial.rebalance.delay.ms") == 0, "the first reader of a group does not wait 3 s"


@pytest.mark.parametrize(
    ("listen", "controller"),
    [("127.0.0.1:7000", 7001), ("127.0.0.1:0", 0), ("127.0.0.1:65535", 65534), ("[::1]:9092", 9093)],
)
def test_the_controller_takes_the_port_above_or_a_free_one(listen: str, controller: int) -> None:
    topology = BrokerConfig.load(listen=listen).topology
    assert topology.controller_listeners[0].port == controller
    assert topology.broker_listeners[0].address == listen


def test_given_listeners_are_completed_with_one_for_the_controller() -> None:
    config = BrokerConfig.load(assignments=["listeners=PLAINTEXT://10.0.0.5:19092", "node.id=7"])
    assert [str(item) for item in config.topology.broker_listeners] == ["PLAINTEXT://10.0.0.5:19092"]
    assert [str(item) for item in config.topology.controller_listeners] == ["CONTROLLER://127.0.0.1:19093"]
    assert config.node_id == 7


def test_given_controller_names_and_listeners_are_kept() -> None:
    given = {"controller.listener.names": "ctl", "listeners": "PLAINTEXT://:9092,CTL://:9999"}
    config = BrokerConfig.standalone(given)
    assert [str(item) for item in config.topology.controller_listeners] == ["CTL://:9999"]
    assert config.topology.bootstrap_servers == ("127.0.0.1:9999",)


def test_kafkas_own_server_properties_works_as_it_is() -> None:
    config = BrokerConfig.load(file=("server.properties", STOCK_SERVER_PROPERTIES), hostname="box")
    assert config.log_dirs == ("/tmp/kraft-combined-logs",)
    assert [str(item) for item in config.topology.advertised_listeners] == ["PLAINTEXT://localhost:9092"]
    assert config.get_int("num.io.threads") == 8
    assert config.get_int("group.initial.rebalance.delay.ms") == 3000, "a complete configuration is as in Kafka"
    assert config.warnings == []


def test_listen_replaces_the_clients_listener_of_a_file_and_keeps_the_controllers() -> None:
    text = STOCK_SERVER_PROPERTIES.replace("advertised.listeners", "# ")
    config = BrokerConfig.load(file=("server.properties", text), listen="127.0.0.1:7000")
    assert [str(item) for item in config.topology.broker_listeners] == ["PLAINTEXT://127.0.0.1:7000"]
    assert [str(item) for item in config.topology.controller_listeners] == ["CONTROLLER://:9093"]


def test_listening_everywhere_asks_for_an_address_to_advertise() -> None:
    with pytest.raises(ConfigError, match=r"0\.0\.0\.0: set it to an address they can reach"):
        BrokerConfig.load(listen="0.0.0.0:9092")
    with pytest.raises(ConfigError, match=r"such as advertised\.listeners=PLAINTEXT://box:9092\.$"):
        BrokerConfig.load(listen="[::]:9092", hostname="box")
    config = BrokerConfig.load(listen="0.0.0.0:9092", assignments=["advertised.listeners=PLAINTEXT://10.1.1.1:9092"])
    assert config.topology.advertised_listeners[0].host == "10.1.1.1"


def test_a_complete_configuration_is_not_added_to() -> None:
    assert standalone_defaults({"process.roles": "broker", "log.dirs": "/d"}) == {}
