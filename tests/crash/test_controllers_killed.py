"""Controllers that are killed or paused while clients change the cluster: no acknowledged change is lost or doubled."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.admin_load import AdminLoad
from tests.crash.everything_is_there import assert_everything_is_there
from tests.crash.real_cluster import RealCluster, running_cluster, wait_until

KILLS = 4
REQUESTS_PER_ROUND = 40


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    with running_cluster(tmp_path) as running:
        yield running


def admin_load(cluster: RealCluster) -> AdminLoad:
    load = AdminLoad({node.id: node.address for node in cluster.nodes.values()})
    load.wait_for_more(REQUESTS_PER_ROUND)
    return load


def test_changes_succeed_after_each_kill_of_the_active_controller(cluster: RealCluster) -> None:
    kill_the_active_controller(cluster, KILLS)


@pytest.mark.soak
def test_changes_succeed_after_many_kills_of_the_active_controller(cluster: RealCluster) -> None:
    kill_the_active_controller(cluster, 5 * KILLS)


def kill_the_active_controller(cluster: RealCluster, kills: int) -> None:
    load = admin_load(cluster)
    for _ in range(kills):
        active = cluster.wait_for_controller()
        cluster.kill(active)
        load.wait_for_more(REQUESTS_PER_ROUND)
        cluster.start(active)
    load.wait_for_more(REQUESTS_PER_ROUND)
    assert_everything_is_there(cluster, load)


def test_a_controller_that_was_paused_finds_itself_replaced(cluster: RealCluster) -> None:
    pause_the_active_controller(cluster, at_least_s=0.0)


@pytest.mark.soak
def test_a_controller_that_was_paused_for_long_finds_itself_replaced(cluster: RealCluster) -> None:
    pause_the_active_controller(cluster, at_least_s=20.0)


def pause_the_active_controller(cluster: RealCluster, at_least_s: float) -> None:
    """Pauses it until its session has expired, and for at least this long."""
    load = admin_load(cluster)
    began_s = time.monotonic()
    paused = cluster.wait_for_controller()
    cluster.nodes[paused].process.pause()
    successor = cluster.wait_for_controller(other_than=paused)
    wait_until(lambda: paused not in cluster.unfenced(successor), "the paused broker is not fenced")
    load.wait_for_more(REQUESTS_PER_ROUND)
    wait_until(lambda: time.monotonic() > began_s + at_least_s, "the pause is not over")
    cluster.nodes[paused].process.resume()
    load.wait_for_more(REQUESTS_PER_ROUND)
    assert cluster.wait_for_controller() != paused
    assert_everything_is_there(cluster, load)


def test_nothing_is_acknowledged_without_a_majority_and_everything_after_it(cluster: RealCluster) -> None:
    load = admin_load(cluster)
    active = cluster.wait_for_controller()
    lost = [node_id for node_id in cluster.nodes if node_id != active]
    cluster.kill(*lost)
    wait_until(lambda: cluster.active_controller() is None, "a controller without a majority stays active")
    # By the second refusal the clients have noted what was acknowledged before.
    load.wait_for_refusals(2)
    before = load.acknowledged.requests
    load.wait_for_refusals(2)
    assert load.acknowledged.requests == before
    cluster.start(*lost)
    load.wait_for_more(REQUESTS_PER_ROUND)
    assert_everything_is_there(cluster, load)


def test_changes_survive_when_all_nodes_are_killed_at_once(cluster: RealCluster) -> None:
    load = admin_load(cluster)
    for _ in range(2):
        cluster.kill()
        cluster.start()
        load.wait_for_more(REQUESTS_PER_ROUND)
    assert_everything_is_there(cluster, load)
