"""The proxies between nodes: which traffic is cut, in which direction, and how a stopped node looks."""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quire.protocol.messages.metadata import MetadataRequest
from quire.testing.cluster_network import ClusterNetwork, NodePorts
from quire.testing.gateway import sender_of
from quire.testing.wire_connection import request_frame

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere a port cannot be kept free")
QUIET_S = 0.2
PATIENCE_S = 60


class EchoNode:
    """A listener of a node whose answers the test writes."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(PATIENCE_S)
        self.port: int = self._socket.getsockname()[1]

    def accept(self) -> socket.socket:
        while True:
            connection, _ = self._socket.accept()
            connection.settimeout(PATIENCE_S)
            if connection.recv(1, socket.MSG_PEEK):  # the proxy's own probes send nothing
                return connection
            connection.close()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def nodes() -> Iterator[list[EchoNode]]:
    opened = [EchoNode() for _ in range(4)]
    yield opened
    for node in opened:
        node.close()


@pytest.fixture
def network(nodes: list[EchoNode], tmp_path: Path) -> Iterator[tuple[ClusterNetwork, dict[int, NodePorts]]]:
    ports = {1: NodePorts(nodes[0].port, nodes[1].port, 0), 2: NodePorts(nodes[2].port, nodes[3].port, 0)}
    opened = ClusterNetwork(ports, tmp_path)
    yield opened, ports
    opened.close()


def connect(port: int) -> socket.socket:
    """Retries until the proxy has noticed that its node listens."""
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        except ConnectionRefusedError:
            continue
        connection.settimeout(PATIENCE_S)
        return connection


def is_quiet(connection: socket.socket) -> bool:
    connection.settimeout(QUIET_S)
    try:
        return not connection.recv(1) and False
    except TimeoutError:
        return True
    finally:
        connection.settimeout(PATIENCE_S)


def greeting(node_id: int) -> bytes:
    return request_frame(MetadataRequest(topics=[]), 12, 1, f"quire-{node_id}-lifecycle")


Opened = tuple[ClusterNetwork, dict[int, NodePorts]]


def test_bytes_pass_in_both_directions(network: Opened, nodes: list[EchoNode]) -> None:
    proxies, ports = network
    proxies.up(1)
    with connect(ports[1].clients_proxy) as client:
        client.sendall(b"question")
        with nodes[0].accept() as served:
            assert served.recv(100) == b"question"
            served.sendall(b"answer")
            assert client.recv(100) == b"answer"


def test_connections_are_refused_until_a_node_listens_and_when_it_is_down(
    network: Opened, nodes: list[EchoNode]
) -> None:
    proxies, ports = network
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", ports[1].clients_proxy), PATIENCE_S)
    proxies.up(1)
    connect(ports[1].clients_proxy).close()
    proxies.down(1)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", ports[1].clients_proxy), PATIENCE_S)


def test_a_client_that_sees_a_node_end_is_refused_by_it(network: Opened, nodes: list[EchoNode]) -> None:
    proxies, ports = network
    proxies.up(1)
    with connect(ports[1].clients_proxy) as client:
        client.sendall(b"question")
        served = nodes[0].accept()
        nodes[0].close()
        served.close()
        assert client.recv(100) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", ports[1].clients_proxy), PATIENCE_S)


def test_bytes_sent_during_an_isolation_arrive_after_the_network_has_healed(
    network: Opened, nodes: list[EchoNode]
) -> None:
    proxies, ports = network
    proxies.up(1)
    with connect(ports[1].clients_proxy) as client:
        client.sendall(b"one")
        with nodes[0].accept() as served:
            assert served.recv(100) == b"one"
            proxies.isolate(1, [2], from_clients=True)
            client.sendall(b"two")
            served.sendall(b"reply")
            assert is_quiet(client) and is_quiet(served)
            proxies.heal()
            assert client.recv(100) == b"reply"
            assert served.recv(100) == b"two"


def test_one_way_only_what_the_node_sends_is_lost(network: Opened, nodes: list[EchoNode]) -> None:
    proxies, ports = network
    proxies.up(1)
    proxies.isolate(1, [2], from_clients=True, received=False)
    with connect(ports[1].nodes_proxy) as other:
        other.sendall(greeting(2))
        with nodes[1].accept() as served:
            assert served.recv(1000) == greeting(2)
            served.sendall(b"reply")
            assert is_quiet(other)


def test_one_way_only_what_is_sent_to_the_node_is_lost(network: Opened, nodes: list[EchoNode]) -> None:
    proxies, ports = network
    proxies.up(1)
    proxies.up(2)
    with connect(ports[1].clients_proxy) as client:
        client.sendall(b"one")
        with nodes[0].accept() as served:
            assert served.recv(100) == b"one"
            proxies.isolate(1, [2], from_clients=True, sent=False)
            served.sendall(b"reply")
            assert client.recv(100) == b"reply"
            client.sendall(b"two")
            assert is_quiet(served)
    with connect(ports[2].nodes_proxy) as other:  # from the isolated node
        other.sendall(greeting(1))
        with nodes[3].accept() as served:
            assert served.recv(1000) == greeting(1)
            served.sendall(b"reply")
            assert is_quiet(other)


def test_other_nodes_and_clients_are_cut_off_apart(network: Opened, nodes: list[EchoNode]) -> None:
    proxies, ports = network
    proxies.up(1)
    proxies.up(2)
    proxies.isolate(1, [2], from_clients=False)
    with (
        connect(ports[1].clients_proxy) as client,
        connect(ports[2].nodes_proxy) as far,
        connect(ports[2].nodes_proxy) as near,
    ):
        client.sendall(b"one")
        assert nodes[0].accept().recv(100) == b"one"
        far.sendall(greeting(1))  # from the isolated node
        near.sendall(greeting(3))
        assert nodes[3].accept().recv(1000) == greeting(3)
        assert is_quiet(far)


def test_a_node_that_is_cut_off_does_not_refuse_when_it_is_down(network: Opened, nodes: list[EchoNode]) -> None:
    proxies, ports = network
    proxies.up(1)
    with connect(ports[1].clients_proxy) as client:
        client.sendall(b"one")
        served = nodes[0].accept()
        proxies.isolate(1, [2], from_clients=True)
        proxies.down(1)
        nodes[0].close()
        served.close()
        assert is_quiet(client)
        with socket.create_connection(("127.0.0.1", ports[1].clients_proxy), PATIENCE_S) as another:
            another.sendall(b"two")
            assert is_quiet(another)
        proxies.heal()
        assert client.recv(100) == b"one"[:0]


@pytest.mark.parametrize(
    ("frame", "sender"),
    [
        (greeting(12), "12"),
        (request_frame(MetadataRequest(topics=[]), 12, 1, "raft-3"), "3"),
        (request_frame(MetadataRequest(topics=[]), 12, 1, "someone"), "unknown"),
        (request_frame(MetadataRequest(topics=[]), 12, 1, None), "unknown"),
        (greeting(1)[:13], None),
        (greeting(1)[:16], None),
    ],
)
def test_a_node_is_known_by_its_first_request(frame: bytes, sender: str | None) -> None:
    assert sender_of(frame) == sender


def test_it_ends_with_its_folder_and_parent(tmp_path: Path) -> None:
    network = ClusterNetwork({1: NodePorts(1, 2, 3)}, tmp_path)
    pid = network._process.pid
    network.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
