"""The active controller loses the other nodes, but not its clients: no acknowledged change is lost or doubled.

It still believes that it leads, and its clients still ask it; what it appends must neither be acknowledged nor survive.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.admin_load import AdminLoad
from tests.crash.everything_is_there import assert_everything_is_there
from tests.crash.proxied_cluster import ProxiedCluster, running_proxied_cluster
from tests.crash.real_cluster import wait_until

ISOLATIONS = 2
REQUESTS_PER_ROUND = 40


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ProxiedCluster]:
    with running_proxied_cluster(tmp_path / "data") as running:
        yield running


@pytest.mark.parametrize("one_way", [False, True], ids=["both ways", "what it sends"])
def test_changes_succeed_after_each_isolation_of_the_active_controller(cluster: ProxiedCluster, one_way: bool) -> None:
    isolate_the_active_controller(cluster, ISOLATIONS, one_way=one_way)


@pytest.mark.soak
def test_changes_succeed_after_many_isolations_of_the_active_controller(cluster: ProxiedCluster) -> None:
    isolate_the_active_controller(cluster, 5 * ISOLATIONS, one_way=False)


def isolate_the_active_controller(cluster: ProxiedCluster, times: int, *, one_way: bool) -> None:
    load = AdminLoad({node.id: node.address for node in cluster.nodes.values()})
    load.wait_for_more(REQUESTS_PER_ROUND)
    for _ in range(times):
        isolate_until_it_is_replaced(cluster, load, one_way=one_way)
        load.wait_for_more(REQUESTS_PER_ROUND)
    assert_everything_is_there(cluster, load)


def isolate_until_it_is_replaced(cluster: ProxiedCluster, load: AdminLoad, *, one_way: bool) -> None:
    isolated = cluster.wait_for_controller()
    cluster.isolate_from_nodes(isolated, one_way=one_way)
    successor = cluster.wait_for_controller(other_than=isolated)
    wait_until(lambda: isolated not in cluster.unfenced(successor), "the isolated broker is not fenced")
    load.wait_for_more(REQUESTS_PER_ROUND)
    cluster.heal()
    cluster.wait_until_unfenced()
