"""Every node is stopped and started again, one after another, as in an upgrade, while clients work."""

import pytest

from quire.testing import Cluster
from tests.crash.replicated_cluster import TOPIC, replicated_cluster, run_under_load, wait_until_in_sync
from tests.crash.replicated_load import ReplicatedLoad


def test_no_acknowledged_record_is_lost_in_a_rolling_restart() -> None:
    with replicated_cluster() as cluster:
        run_under_load(cluster, lambda load: restart_all(cluster, load, rounds=1))


@pytest.mark.soak
def test_no_acknowledged_record_is_lost_in_many_rolling_restarts() -> None:
    with replicated_cluster() as cluster:
        run_under_load(cluster, lambda load: restart_all(cluster, load, rounds=10))


def restart_all(cluster: Cluster, load: ReplicatedLoad, rounds: int) -> None:
    for _ in range(rounds):
        for node in cluster.nodes:
            cluster.restart(node)
            load.wait_for_progress()
            wait_until_in_sync(cluster.bootstrap_servers, TOPIC)
