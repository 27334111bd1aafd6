"""Machines that lose power while clients write: after a restart they have everything that their settings promise.

A SIGKILL keeps the page cache, so it does not test syncs. Here the nodes run on machines whose disks forget what was
not synced (see `tests.crash.power_loss`); a seed that fails is in the name of the test or in its messages.
"""

from pathlib import Path

import pytest

from tests.crash.admin_load import AdminLoad
from tests.crash.everything_is_there import assert_everything_is_there
from tests.crash.power_loss.machine import contents
from tests.crash.power_loss.powered_cluster import PoweredCluster, powered_cluster
from tests.crash.record_load import (
    IDEMPOTENT,
    PARTITIONS,
    TOPIC,
    Load,
    assert_stored,
    create_topic,
    verdict_on_a_prefix,
)

LOSSES = 5
MANY_LOSSES = 15
"""Of controllers: the clients create topics all the time, and each start replays a longer log."""
ACKS_PER_ROUND = 1500
REQUESTS_PER_ROUND = 30
SMALL_SEGMENTS = {"log.segment.bytes": 1 << 20, "log.retention.ms": -1}
FLUSHED = {**SMALL_SEGMENTS, "log.flush.interval.messages": 1}


def test_records_acknowledged_with_flush_messages_1_survive_every_power_loss(tmp_path: Path) -> None:
    with powered_cluster(tmp_path, settings=FLUSHED) as cluster:
        lose_power_under_load(cluster, LOSSES)


@pytest.mark.soak
def test_records_acknowledged_with_flush_messages_1_survive_many_power_losses(tmp_path: Path) -> None:
    with powered_cluster(tmp_path, settings=FLUSHED) as cluster:
        lose_power_under_load(cluster, 10 * LOSSES)


def lose_power_under_load(cluster: PoweredCluster, losses: int) -> None:
    create_topic(cluster.bootstrap_servers)
    load = Load(cluster.bootstrap_servers, **IDEMPOTENT)
    for seed in range(losses):
        load.wait_for_more(ACKS_PER_ROUND)
        cluster.lose_power(seed=seed)
        cluster.start()
    load.wait_for_more(ACKS_PER_ROUND)
    assert_stored(cluster.bootstrap_servers, load)
    assert sum(machine.changed_files + machine.changed_names for machine in cluster.machines.values())


def test_a_disk_that_lies_about_syncs_loses_acknowledged_records(tmp_path: Path) -> None:
    """Proves that the test above detects a missing sync: here the disks ignore syncs."""
    cluster = PoweredCluster(tmp_path, settings={**FLUSHED, "log.segment.bytes": 1 << 30}, syncs=False)
    try:
        cluster.start()
        create_topic(cluster.bootstrap_servers)
        load = Load(cluster.bootstrap_servers, **IDEMPOTENT)
        load.wait_for_more(ACKS_PER_ROUND)
        cluster.kill()
        load.abandon()
        acknowledged = sum(map(len, load.acknowledged))
        kept = contents(cluster.machines[1].kept("a seed"))
        values = b"".join(kept.get(f"{TOPIC}-{partition}/{0:020}.log") or b"" for partition in range(PARTITIONS))
        assert values.count(b"." * 500) < acknowledged
    finally:
        cluster.kill()


@pytest.mark.parametrize("seed", range(3))
def test_a_log_that_is_not_flushed_opens_to_a_prefix_of_what_was_written(tmp_path: Path, seed: int) -> None:
    assert lose_what_is_not_flushed(tmp_path, seed), "the power loss took nothing acknowledged: it tests nothing"


@pytest.mark.soak
def test_a_log_that_is_not_flushed_opens_to_a_prefix_with_many_seeds(tmp_path: Path) -> None:
    assert sum(lose_what_is_not_flushed(tmp_path / str(seed), seed) for seed in range(3, 30))


def lose_what_is_not_flushed(folder: Path, seed: int) -> int:
    """Returns how many acknowledged records are lost."""
    with powered_cluster(folder, settings=SMALL_SEGMENTS) as cluster:
        create_topic(cluster.bootstrap_servers)
        load = Load(cluster.bootstrap_servers, **IDEMPOTENT)
        load.wait_for_more(2 * ACKS_PER_ROUND)
        cluster.kill()
        load.abandon()
        cluster.lose_power(seed=seed)
        cluster.start()
        cluster.wait_until_unfenced()
        verdict = verdict_on_a_prefix(cluster.bootstrap_servers, load)
        print(f"seed {seed}: {verdict}")
        return verdict.lost


def admin_load(cluster: PoweredCluster) -> AdminLoad:
    load = AdminLoad({node.id: node.address for node in cluster.nodes.values()})
    load.wait_for_more(REQUESTS_PER_ROUND)
    return load


def test_no_change_of_the_cluster_is_lost_if_the_active_controller_loses_power(tmp_path: Path) -> None:
    lose_power_of_the_active_controller(tmp_path, LOSSES)


@pytest.mark.soak
def test_no_change_of_the_cluster_is_lost_if_active_controllers_lose_power_again_and_again(tmp_path: Path) -> None:
    lose_power_of_the_active_controller(tmp_path, MANY_LOSSES)


def lose_power_of_the_active_controller(folder: Path, losses: int) -> None:
    with powered_cluster(folder, 3) as cluster:
        load = admin_load(cluster)
        for seed in range(losses):
            active = cluster.wait_for_controller()
            cluster.lose_power(active, seed=seed)
            load.wait_for_more(REQUESTS_PER_ROUND)
            cluster.start(active)
        load.wait_for_more(REQUESTS_PER_ROUND)
        assert_everything_is_there(cluster, load)


def test_no_change_of_the_cluster_is_lost_if_all_controllers_lose_power(tmp_path: Path) -> None:
    lose_power_of_all_controllers(tmp_path, LOSSES)


@pytest.mark.soak
def test_no_change_of_the_cluster_is_lost_if_all_controllers_lose_power_again_and_again(tmp_path: Path) -> None:
    lose_power_of_all_controllers(tmp_path, MANY_LOSSES)


def lose_power_of_all_controllers(folder: Path, losses: int) -> None:
    with powered_cluster(folder, 3) as cluster:
        load = admin_load(cluster)
        for seed in range(losses):
            cluster.lose_power(seed=seed)
            cluster.start()
            load.wait_for_more(REQUESTS_PER_ROUND)
        assert_everything_is_there(cluster, load)
