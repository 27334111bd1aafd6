"""Only a fault that no request has met is reported."""

import os
import signal

import pytest

from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.testing import Cluster, ClusterError, UnusedFaultError, WireConnection


def ask(cluster: Cluster) -> None:
    with WireConnection(cluster.bootstrap_servers) as connection:
        connection.call(MetadataRequest(topics=[]), 12, MetadataResponse)


def test_the_end_of_the_block_reports_what_was_never_used() -> None:
    expected = r"^fail_next\('Produce', 'NOT_COORDINATOR', 3\) was never used"
    with pytest.raises(UnusedFaultError, match=expected), Cluster() as cluster:
        cluster.fail_next("Metadata", "NOT_CONTROLLER", count=99)
        ask(cluster)  # some of them are enough
        cluster.fail_next("Produce", "NOT_COORDINATOR", 3)
        folder = cluster.data_dir
    assert not folder.exists()


def test_an_exception_in_the_block_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError), Cluster() as cluster:
        cluster.fail_next("Produce", "NOT_COORDINATOR")
        _ = 1 / 0


def test_faults_are_checked_and_end_on_request() -> None:
    with Cluster() as cluster:
        cluster.delay("Metadata", 1)
        ask(cluster)
        cluster.check_faults()
        cluster.delay("Fetch", 5)
        cluster.fail_next("Produce", "NOT_COORDINATOR", required=False)
        with pytest.raises(UnusedFaultError, match=r"^delay\('Fetch', 5\) was never used"):
            cluster.check_faults()
        cluster.check_faults()


@pytest.mark.parametrize("end", [Cluster.clear_faults, Cluster.kill, Cluster.restart])
def test_ending_faults_early_does_not_hide_that_they_were_unused(end: object) -> None:
    assert callable(end)
    with Cluster() as cluster:
        cluster.fail_next("Metadata", "NOT_CONTROLLER")
        ask(cluster)
        cluster.fail_next("Produce", "NOT_COORDINATOR")
        end(cluster)
        cluster.restart()
        with pytest.raises(UnusedFaultError, match=r"^fail_next\('Produce', 'NOT_COORDINATOR'\) was"):
            cluster.check_faults()


def test_nothing_is_claimed_about_a_node_that_died() -> None:
    with Cluster() as cluster:
        cluster.fail_next("Produce", "NOT_COORDINATOR")
        os.kill(cluster.pids[1], signal.SIGKILL)
        while cluster.pids:  # until the process is reaped
            pass


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        (lambda it: it.fail_next("Produce", "NOT_COORDINATOR", 0), "'0' is not a whole number of at least 1"),
        (lambda it: it.fail_next("Produce", "NOT_COORDINATOR", -1), "'-1' is not a whole number"),
        (lambda it: it.fail_next("Produce", "NONE"), "NONE is not an error"),
        (lambda it: it.delay("Fetch", 0.5), "'0.5' is not a whole number of at least 0"),
    ],
)
def test_a_fault_that_would_do_nothing_is_refused(call: object, wrong: str, quire_cluster: Cluster) -> None:
    assert callable(call)
    with pytest.raises(ClusterError, match=wrong):
        call(quire_cluster)


def test_a_paused_node_answers_after_it_resumes(quire_cluster: Cluster) -> None:
    with WireConnection(quire_cluster.bootstrap_servers) as connection:
        connection.call(MetadataRequest(topics=[]), 12, MetadataResponse)
        quire_cluster.pause()
        sent = connection.send(MetadataRequest(topics=[]), 12)
        connection.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.socket.recv(1)
        with pytest.raises(ClusterError, match="paused"):
            quire_cluster.fail_next("Metadata", "NOT_CONTROLLER")
        quire_cluster.resume()
        connection.socket.settimeout(60)
        connection.receive(MetadataResponse, 12, sent)


def test_a_paused_cluster_stops() -> None:
    with Cluster() as cluster:
        cluster.pause()
