"""Any nodes, killed at random moments for a while: no acknowledged change of the cluster is lost or doubled."""

import random
import time
from pathlib import Path

import pytest

from tests.crash.admin_load import AdminLoad
from tests.crash.everything_is_there import assert_everything_is_there
from tests.crash.keeper import Keeper
from tests.crash.real_cluster import RealCluster, running_cluster


def test_acknowledged_changes_survive_a_few_random_kills(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as cluster:
        kill_at_random(cluster, kills=5, seconds=8.0)


@pytest.mark.soak
def test_acknowledged_changes_survive_many_random_kills(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as cluster:
        kill_at_random(cluster, kills=30, seconds=180.0)


def kill_at_random(cluster: RealCluster, kills: int, seconds: float) -> None:
    seed = time.time_ns()
    print(f"seed {seed}")
    chance = random.Random(seed)
    load = AdminLoad({node.id: node.address for node in cluster.nodes.values()})
    keepers = [Keeper(node) for node in cluster.nodes.values()]
    for _ in range(kills):
        # The moment is random; meanwhile the clients keep working.
        time.sleep(chance.uniform(0.0, 2 * seconds / kills))
        for keeper in chance.sample(keepers, chance.choice((1, 1, 1, 2, 3))):
            keeper.kill()
    for keeper in keepers:
        keeper.finish()
    load.wait_for_more(20)
    assert_everything_is_there(cluster, load)
