"""Every node is stopped and started again, one after another, as in an upgrade, while clients work."""

import json
from pathlib import Path

import pytest

from quire.testing import Cluster
from tests.cli.command import quire
from tests.cli.node.local.running import cluster
from tests.crash.replicated_cluster import (
    REPLICATED,
    TOPIC,
    create_replicated,
    replicated_cluster,
    run_under_load,
    wait_until_in_sync,
)
from tests.crash.replicated_load import PARTITIONS, ReplicatedLoad
from tests.crash.verdict import assert_clean, replicas_differ


def test_no_acknowledged_record_is_lost_in_a_rolling_restart() -> None:
    with replicated_cluster() as cluster:
        run_under_load(cluster, lambda load: restart_all(cluster, load, rounds=1))


def test_no_acknowledged_record_is_lost_when_the_command_restarts_all_nodes(tmp_path: Path) -> None:
    data = tmp_path / "data"
    settings = [word for key, value in REPLICATED.items() for word in ("--set", f"{key}={value}")]
    with cluster(tmp_path, "--nodes", "3", "--ephemeral", "--data", str(data), *settings) as running:
        create_replicated(running.servers, TOPIC)
        with ReplicatedLoad(running.servers, TOPIC) as load:
            done = quire("cluster", "restart", "--rolling", "--data", str(data), "--json")
            assert done.returncode == 0, done.stderr
            assert len(json.loads(done.stdout)["restarted"]) == 3
            load.wait_for_progress()
            wait_until_in_sync(running.servers, TOPIC)
            assert_clean(load)
        wait_until_in_sync(running.servers, TOPIC)
        assert running.stop() == 0
        assert "Traceback" not in running.log()
    assert replicas_differ([data / f"node-{number}" for number in (1, 2, 3)], TOPIC, PARTITIONS) == ""


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
