"""All nodes killed at the same moment, under load: acknowledged records are in the page cache of every replica."""

import pytest

from quire.testing import Cluster
from tests.crash.replicated_cluster import TOPIC, replicated_cluster, run_under_load, wait_until_in_sync
from tests.crash.replicated_load import ReplicatedLoad

KILLS = 2


def test_no_acknowledged_record_is_lost_when_all_nodes_are_killed_at_once() -> None:
    with replicated_cluster() as cluster:
        run_under_load(cluster, lambda load: kill_all(cluster, load, KILLS))


@pytest.mark.soak
def test_no_acknowledged_record_is_lost_when_all_nodes_are_killed_again_and_again() -> None:
    with replicated_cluster() as cluster:
        run_under_load(cluster, lambda load: kill_all(cluster, load, 10 * KILLS))


def kill_all(cluster: Cluster, load: ReplicatedLoad, kills: int) -> None:
    for _ in range(kills):
        cluster.kill()
        cluster.restart()
        load.wait_for_progress()
        wait_until_in_sync(cluster.bootstrap_servers, TOPIC)
