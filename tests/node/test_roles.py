"""Nodes with one role: controllers that are not brokers, and brokers that follow a quorum of others."""

import logging

import pytest

from quire.config.broker_config import BrokerConfig
from quire.controller.format import format_node
from quire.node.node import Node
from quire.node.node_state import NodeState
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from quire.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.raft.control_state import NO_VOTERS
from simulator.clock import HostClock
from simulator.disk import SimDisk
from simulator.jobs import SimJobs
from simulator.random import SimRandom
from tests.node.sim_nodes import CLIENT_PORT, CONTROLLER_PORT, SimNodes

CONTROLLER, BROKER = "controller", "broker"


@pytest.fixture
def nodes() -> SimNodes:
    """Controllers 1, 2 and 3, and brokers 4 and 5."""
    return SimNodes((CONTROLLER, CONTROLLER, CONTROLLER, BROKER, BROKER)).start()


def create(nodes: SimNodes, node_id: int, name: str) -> CreateTopicsResponse:
    topic = CreatableTopic(name=name, num_partitions=4, replication_factor=1)
    return nodes.ask(node_id, CreateTopicsRequest(topics=[topic], timeout_ms=20_000), CreateTopicsResponse)


def test_controllers_serve_without_a_broker(nodes: SimNodes) -> None:
    for node_id in (1, 2, 3):
        node = nodes.nodes[node_id]
        assert node.progress.state is NodeState.SERVING
        assert (node.broker, node.ready.value) == (None, f"node{node_id}:{CONTROLLER_PORT}")
    nodes.until(lambda: sorted(nodes.nodes[4].image.controllers) == [1, 2, 3])
    assert sorted(nodes.nodes[4].image.brokers) == [4, 5]


def test_brokers_pass_requests_on_and_host_the_partitions(nodes: SimNodes) -> None:
    for node_id, name in ((4, "t"), (5, "u")):
        assert create(nodes, node_id, name).topics[0].error_code == ErrorCode.NONE
        partitions = nodes.nodes[node_id].image.topics_by_name[name].partitions
        assert sorted(each.leader for each in partitions.values()) == [4, 4, 5, 5]
        ids = nodes.ask(node_id, InitProducerIdRequest(transactional_id=None), InitProducerIdResponse)
        assert ids.error_code == ErrorCode.NONE
    answer = nodes.ask(4, MetadataRequest(topics=[]), MetadataResponse)
    assert [(each.node_id, each.host) for each in answer.brokers] == [(4, "node4"), (5, "node5")]
    assert answer.controller_id in (4, 5), "clients send requests for the controller to a broker"


def test_a_controller_describes_controllers_and_its_quorum_has_observers(nodes: SimNodes) -> None:
    nodes.until(lambda: sorted(nodes.nodes[1].image.controllers) == [1, 2, 3])
    described = nodes.ask(1, DescribeClusterRequest(endpoint_type=2), DescribeClusterResponse, port=CONTROLLER_PORT)
    assert [each.broker_id for each in described.brokers] == [1, 2, 3]
    assert described.controller_id == nodes.leader_id
    refused = nodes.ask(1, DescribeClusterRequest(endpoint_type=1), DescribeClusterResponse, port=CONTROLLER_PORT)
    assert [(each.broker_id, each.port) for each in refused.brokers] == [(4, 9092), (5, 9092)]
    topic = DescribeQuorumRequestTopicData(
        topic_name="__cluster_metadata", partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
    )
    quorum = nodes.ask(5, DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse).topics[0].partitions[0]
    assert quorum.leader_id == nodes.leader_id
    assert [each.replica_id for each in quorum.current_voters] == [1, 2, 3]
    assert sorted(each.replica_id for each in quorum.observers) == [4, 5]


def test_a_broker_finds_the_next_controller(nodes: SimNodes) -> None:
    leader_id = nodes.leader_id
    assert leader_id is not None
    nodes.kill(leader_id)
    assert create(nodes, 4, "t").topics[0].error_code == ErrorCode.NONE
    nodes.clock.run_for(20_000)
    assert all(not nodes.nodes[4].image.brokers[id_].fenced for id_ in (4, 5)), "heartbeats reach the next one too"
    nodes.restart(leader_id)
    nodes.until(lambda: nodes.nodes[leader_id].image.topic("t") is not None)


def test_a_broker_that_starts_before_its_controllers_waits_for_them() -> None:
    nodes = SimNodes((CONTROLLER, BROKER))
    broker = nodes.begin(2)
    nodes.clock.run_for(60_000)
    assert broker.progress.state is NodeState.CATCHING_UP
    nodes.begin(1)
    nodes.until(lambda: broker.ready.done)


def begin_elsewhere(nodes: SimNodes, host: str, config: BrokerConfig) -> Node:
    """A node that `SimNodes` knows nothing of."""
    clock, random = HostClock(nodes.clock), SimRandom(host)
    disk = SimDisk(random)
    cluster_id = nodes.nodes[1].cluster_id
    format_node(disk, random, config, now_ms=0, cluster_id=cluster_id, initial_voters=NO_VOTERS)
    network = nodes.network.host(host)
    node = Node(config, clock=clock, random=random, disk=disk, jobs=SimJobs(clock, random), network=network)
    node.start()
    return node


def test_a_broker_that_reaches_no_controller_names_those_that_it_has_tried(
    nodes: SimNodes, caplog: pytest.LogCaptureFixture
) -> None:
    """One address is a listener for clients, and nothing listens at the other."""
    settings = {
        "process.roles": "broker",
        "node.id": "9",
        "log.dirs": "/data",
        "listeners": f"PLAINTEXT://node9:{CLIENT_PORT}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"node4:{CLIENT_PORT},node1:1",
    }
    caplog.set_level(logging.INFO, "quire.requests")
    begin_elsewhere(nodes, "node9", BrokerConfig(settings))
    nodes.until(lambda: "still waiting for the metadata log" in caplog.text)
    (line,) = [each for each in caplog.messages if each.startswith("still waiting for the metadata log")]
    assert "no active controller is known" in line
    assert f"node4:{CLIENT_PORT}: UNKNOWN_TOPIC_ID: it is not a controller, because it has no metadata log" in line
    assert "node1:1 is not reachable" in line
    assert "with UNKNOWN_TOPIC_ID: only controller listeners have the metadata log" in caplog.text


def test_controllers_that_were_all_formatted_to_join_are_told_to_format_the_first(
    caplog: pytest.LogCaptureFixture,
) -> None:
    nodes = SimNodes((CONTROLLER,)).start()
    servers = ",".join(f"new{id_}:{CONTROLLER_PORT}" for id_ in (1, 2))
    for id_ in (1, 2):
        settings = {
            "process.roles": "controller",
            "node.id": str(id_),
            "log.dirs": "/data",
            "listeners": f"CONTROLLER://new{id_}:{CONTROLLER_PORT}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": servers,
        }
        begin_elsewhere(nodes, f"new{id_}", BrokerConfig(settings))
    nodes.until(lambda: caplog.text.count("format its first controllers with --initial-controllers") == 2)


def test_a_second_process_with_the_id_of_the_active_controller_says_what_it_waits_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    nodes = SimNodes((CONTROLLER, CONTROLLER, CONTROLLER)).start()
    leader_id = nodes.leader_id
    assert leader_id is not None
    begin_elsewhere(nodes, "double", nodes.config(leader_id))
    nodes.until(lambda: "say that this node leads them; does another process have its node.id?" in caplog.text)
    assert nodes.leader_id == leader_id


def test_the_last_active_controller_says_which_controllers_it_waits_for(caplog: pytest.LogCaptureFixture) -> None:
    """It remembers that it led the last epoch; no other node has said so."""
    nodes = SimNodes((CONTROLLER, CONTROLLER, CONTROLLER)).start()
    leader_id = nodes.leader_id
    assert leader_id is not None
    for node_id in (1, 2, 3):
        nodes.kill(node_id)
    caplog.clear()
    caplog.set_level(logging.INFO, "quire.node")
    nodes.begin(leader_id)
    nodes.until(lambda: "still waiting for the metadata log" in caplog.text)
    assert caplog.text.count("most of the controllers 1, 2, 3 must be up") == 2


def test_brokers_and_controllers_stop_cleanly(nodes: SimNodes) -> None:
    started_ms = nodes.clock.monotonic_ms()
    for node_id in (4, 5, 1, 2, 3):
        nodes.stop(node_id)
    assert nodes.clock.monotonic_ms() - started_ms < 20_000
    nodes.start()
    assert sorted(nodes.nodes[4].image.brokers) == [4, 5]
