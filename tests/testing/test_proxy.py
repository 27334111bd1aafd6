"""The proxy forwards, counts, drops and holds responses, cuts connections, and clients always connect through it."""

import time

import pytest

from quire.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.testing import Cluster, Proxy, WireConnection

NOTHING = MetadataRequest(topics=[])
PATIENCE_S = 30.0


def test_clients_get_the_proxys_address(quire_cluster: Cluster) -> None:
    with Proxy(quire_cluster.bootstrap_servers) as proxy, WireConnection(proxy.address) as connection:
        for version in range(14):
            (broker,) = connection.call(NOTHING, version, MetadataResponse).brokers
            assert f"{broker.host}:{broker.port}" == proxy.address
        (described,) = connection.call(DescribeClusterRequest(), 2, DescribeClusterResponse).brokers
        assert f"{described.host}:{described.port}" == proxy.address
        assert (proxy.requests["Metadata"], proxy.answers["Metadata"], proxy.connections) == (14, 14, 1)


def test_a_lost_answer_ends_the_connection_it_came_on(quire_cluster: Cluster) -> None:
    with Proxy(quire_cluster.bootstrap_servers) as proxy, WireConnection(proxy.address) as connection:
        proxy.lose_answers("Metadata", 2)
        connection.send(NOTHING, 12)
        connection.send(NOTHING, 12)
        assert connection.is_closed_by_peer()
        assert proxy.lost["Metadata"] == 2
        with WireConnection(proxy.address) as again:
            again.call(NOTHING, 12, MetadataResponse)


def test_held_answers_come_when_they_are_released(quire_cluster: Cluster) -> None:
    with Proxy(quire_cluster.bootstrap_servers) as proxy, WireConnection(proxy.address) as connection:
        proxy.hold_answers("Metadata")
        sent = connection.send(NOTHING, 12)
        connection.socket.settimeout(0.1)
        with pytest.raises(TimeoutError):
            connection.socket.recv(1)
        connection.socket.settimeout(PATIENCE_S)
        proxy.release_answers()
        connection.receive(MetadataResponse, 12, sent)


def test_cut_closes_what_is_open(quire_cluster: Cluster) -> None:
    with Proxy(quire_cluster.bootstrap_servers) as proxy, WireConnection(proxy.address) as connection:
        connection.call(NOTHING, 12, MetadataResponse)
        proxy.cut()
        assert connection.is_closed_by_peer()


def test_waiting_says_what_was_counted_when_it_gives_up(quire_cluster: Cluster) -> None:
    with Proxy(quire_cluster.bootstrap_servers) as proxy:
        began = time.monotonic()
        with pytest.raises(TimeoutError, match="requests"):
            proxy.wait_until(lambda it: it.requests["Produce"] == 1, timeout_s=0.05)
        assert time.monotonic() - began < PATIENCE_S, "the default"


def test_an_api_that_does_not_exist_is_refused(quire_cluster: Cluster) -> None:
    with Proxy(quire_cluster.bootstrap_servers) as proxy:
        with pytest.raises(ValueError, match="there is no API 'produce'"):
            proxy.lose_answers("produce", 1)
        with pytest.raises(ValueError, match="there is no API 'produce'"):
            proxy.hold_answers("produce")
