"""A leader killed with -9 again and again under acks=all: another one takes over, and nothing acknowledged is lost."""

import pytest

from quire.testing import Cluster
from tests.crash.replicated_cluster import TOPIC, leaders_of, replicated_cluster, run_under_load, wait_until_in_sync
from tests.crash.replicated_load import PARTITIONS, ReplicatedLoad

KILLS = 5


def test_no_acknowledged_record_is_lost_when_leaders_are_killed() -> None:
    with replicated_cluster() as cluster:
        run_under_load(cluster, lambda load: kill_leaders(cluster, load, KILLS))


def test_no_acknowledged_record_is_lost_when_a_leader_is_killed_that_is_the_active_controller() -> None:
    with replicated_cluster() as cluster:
        run_under_load(cluster, lambda load: kill_controllers(cluster, load, 2))


@pytest.mark.soak
def test_no_acknowledged_record_is_lost_when_many_leaders_are_killed() -> None:
    with replicated_cluster() as cluster:
        run_under_load(cluster, lambda load: kill_leaders(cluster, load, 10 * KILLS))


@pytest.mark.soak
def test_no_acknowledged_record_is_lost_when_many_active_controllers_are_killed() -> None:
    with replicated_cluster() as cluster:
        run_under_load(cluster, lambda load: kill_controllers(cluster, load, 20))


def kill_leaders(cluster: Cluster, load: ReplicatedLoad, kills: int) -> None:
    for number in range(kills):
        kill(cluster, load, cluster.leader_of(TOPIC, number % PARTITIONS))


def kill_controllers(cluster: Cluster, load: ReplicatedLoad, kills: int) -> None:
    for _ in range(kills):
        controller = leading_controller(cluster, load)
        assert controller in leaders_of(cluster).values()
        kill(cluster, load, controller)


def leading_controller(cluster: Cluster, load: ReplicatedLoad) -> int:
    """Returns the active controller once it leads a partition.

    A killed node leads nothing after its restart. Then other leaders are killed, until the active controller leads
    again.
    """
    for partition in range(PARTITIONS):
        controller, leaders = cluster.controller, leaders_of(cluster)
        if controller in leaders.values():
            return controller
        kill(cluster, load, leaders[partition])
    raise AssertionError(f"the active controller leads none of {leaders_of(cluster)}")


def kill(cluster: Cluster, load: ReplicatedLoad, node: int) -> None:
    cluster.kill(node)
    load.wait_for_progress()
    cluster.restart(node)
    wait_until_in_sync(cluster.bootstrap_servers, TOPIC)
