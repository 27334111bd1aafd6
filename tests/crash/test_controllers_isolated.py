"""The active controller loses the other nodes, but not its clients: no acknowledged change is lost or doubled.

It still believes that it leads, and its clients still ask it; what it appends must neither be acknowledged nor survive.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.crash.admin_load import AdminLoad
from tests.crash.everything_is_there import assert_everything_is_there
from tests.crash.proxied_cluster import ONE_WAY, OneWay, ProxiedCluster, running_proxied_cluster
from tests.crash.real_cluster import wait_until

ISOLATIONS = 2
REQUESTS_PER_ROUND = 40
REQUESTS_MEANWHILE = 10
"""Fewer, because every third one is sent to the isolated node, which answers no earlier than its time-out."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ProxiedCluster]:
    with running_proxied_cluster(tmp_path / "data") as running:
        yield running


@pytest.mark.parametrize("one_way", ONE_WAY, ids=["both ways", "is not heard", "does not hear"])
def test_changes_succeed_after_each_isolation_of_the_active_controller(
    cluster: ProxiedCluster, one_way: OneWay
) -> None:
    isolate_the_active_controller(cluster, [one_way] * ISOLATIONS)


@pytest.mark.soak
def test_changes_succeed_after_many_isolations_of_the_active_controller(cluster: ProxiedCluster) -> None:
    isolate_the_active_controller(cluster, 5 * ONE_WAY)


def isolate_the_active_controller(cluster: ProxiedCluster, ways: Sequence[OneWay]) -> None:
    load = AdminLoad({node.id: node.address for node in cluster.nodes.values()})
    load.wait_for_more(REQUESTS_PER_ROUND)
    for one_way in ways:
        isolate_until_it_is_replaced(cluster, load, one_way=one_way)
        load.wait_for_more(REQUESTS_PER_ROUND)
    assert_everything_is_there(cluster, load)


def isolate_until_it_is_replaced(cluster: ProxiedCluster, load: AdminLoad, *, one_way: OneWay) -> None:
    isolated = cluster.wait_for_controller()
    cluster.isolate_from_nodes(isolated, one_way=one_way)
    successor = cluster.wait_for_controller(other_than=isolated)
    wait_until(lambda: isolated not in cluster.unfenced(successor), "the isolated broker is not fenced")
    load.wait_for_more(REQUESTS_MEANWHILE)
    cluster.heal()
    cluster.wait_until_unfenced()
