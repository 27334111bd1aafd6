"""Clients of readers and tasks: reused until a failure, replaced after it, and patient while a node restarts."""

import threading

import pytest

from pyspark_quire.connect import Connection, borrow, run_patiently
from pyspark_quire.options import Options, Use
from quire.client.cluster import Cluster as ClientCluster
from quire.client.errors import UnreachableError
from quire.steps import Steps
from quire.testing import Cluster


def options(servers: str) -> Options:
    return Options({"kafka.bootstrap.servers": servers}, Use.BATCH_READ)


def ask(cluster: ClientCluster) -> Steps[int]:
    yield from cluster.refresh([])
    return len(cluster.metadata.brokers)


def test_the_next_task_of_a_worker_gets_the_client_of_the_last(servers: str) -> None:
    with borrow(options(servers)) as first:
        assert first.run(ask(first.cluster)) == 1
    with borrow(options(servers)) as second:
        assert second is first


def test_a_client_in_use_is_not_lent_twice(servers: str) -> None:
    with borrow(options(servers)) as first, borrow(options(servers)) as second:
        assert second is not first


def test_a_client_is_thrown_away_after_a_failure(servers: str) -> None:
    with pytest.raises(KeyError), borrow(options(servers)) as first:
        raise KeyError
    with borrow(options(servers)) as second:
        assert second is not first


def test_the_first_request_fails_at_once_when_no_server_is_reachable() -> None:
    connection = Connection(options("127.0.0.1:1"))
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1"):
        connection.run(ask)
    connection.close()


def test_later_questions_wait_for_a_node_that_was_killed(fresh_quire_cluster: Cluster) -> None:
    connection = Connection(options(fresh_quire_cluster.bootstrap_servers))
    assert connection.run(ask) == 1
    fresh_quire_cluster.kill()
    restart = threading.Thread(target=fresh_quire_cluster.restart)
    restart.start()
    assert connection.run(ask) == 1
    restart.join()
    connection.close()


def test_patience_ends(fresh_quire_cluster: Cluster) -> None:
    with borrow(options(fresh_quire_cluster.bootstrap_servers)) as client:
        assert client.run(ask(client.cluster)) == 1
        fresh_quire_cluster.kill()
        with pytest.raises(UnreachableError):
            run_patiently(client, ask, 300)
