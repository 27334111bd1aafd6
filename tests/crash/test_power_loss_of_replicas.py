"""Replicas that lose power while clients write with acks=all: replication makes up for what was not synced.

A replica that may have lost the end of its log must not lead, and must not count as having what it has lost, until it
has copied that again. See `tests.crash.power_loss` for the machines.
"""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.crash.power_loss.powered_cluster import PoweredCluster, powered_cluster
from tests.crash.real_cluster import wait_while
from tests.crash.record_load import IDEMPOTENT, Load, create_topic, verdict_on_a_prefix
from tests.crash.record_load import PARTITIONS as LOAD_PARTITIONS
from tests.crash.record_load import TOPIC as LOAD_TOPIC
from tests.crash.replicated_cluster import (
    NODES,
    REPLICATED,
    TOPIC,
    create_replicated,
    in_sync,
    kill_and_compare,
    leaders_of,
    run_under_load,
    wait_until_in_sync,
)
from tests.crash.replicated_load import PARTITIONS, WAIT_S, ReplicatedLoad, client_settings
from tests.crash.verdict import assert_clean

LOSSES = 3
SEEDS = range(1, 6)
ACKS = 1000
MOST_WAITING = 30
TRANSACTIONS = "__transaction_state"
SETTINGS: dict[str, object] = {**REPLICATED, "log.segment.bytes": 1 << 20, "log.retention.ms": -1}
FLUSHED = {**SETTINGS, "log.flush.interval.messages": 1}


def test_leaders_that_lose_power_one_after_the_other_lose_nothing(tmp_path: Path) -> None:
    lose_power_of_leaders(tmp_path, LOSSES)


@pytest.mark.soak
def test_many_leaders_that_lose_power_one_after_the_other_lose_nothing(tmp_path: Path) -> None:
    lose_power_of_leaders(tmp_path, 10 * LOSSES)


def lose_power_of_leaders(folder: Path, losses: int) -> None:
    def lose_power(load: ReplicatedLoad) -> None:
        for seed in range(losses):
            leader = leaders_of(cluster)[seed % PARTITIONS]
            cluster.lose_power(leader, seed=seed)
            load.wait_for_progress()
            cluster.start(leader)
            for topic in (TOPIC, TRANSACTIONS):
                wait_until_in_sync(cluster.bootstrap_servers, topic)

    with powered_cluster(folder, NODES, SETTINGS) as cluster:
        create_replicated(cluster.bootstrap_servers, TOPIC)
        run_under_load(cluster, lose_power)
        assert_something_was_lost(cluster)


def test_all_replicas_may_lose_power_at_once_if_each_record_is_flushed(tmp_path: Path) -> None:
    lose_power_of_all(tmp_path, LOSSES)


@pytest.mark.soak
def test_all_replicas_may_lose_power_again_and_again_if_each_record_is_flushed(tmp_path: Path) -> None:
    lose_power_of_all(tmp_path, 10 * LOSSES)


def lose_power_of_all(folder: Path, losses: int) -> None:
    def lose_power(load: ReplicatedLoad) -> None:
        for seed in range(losses):
            load.wait_for_progress()
            cluster.lose_power(seed=seed)
            cluster.start()
            wait_until_in_sync(cluster.bootstrap_servers, TOPIC)

    with powered_cluster(folder, NODES, FLUSHED) as cluster:
        create_replicated(cluster.bootstrap_servers, TOPIC)
        run_under_load(cluster, lose_power)
        assert_something_was_lost(cluster)


def test_the_last_replica_in_sync_may_lose_power(tmp_path: Path) -> None:
    lose_power_of_the_last(tmp_path, 0)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_the_last_replica_in_sync_may_lose_power_with_any_seed(tmp_path: Path, seed: int) -> None:
    lose_power_of_the_last(tmp_path, seed)


def lose_power_of_the_last(folder: Path, seed: int) -> None:
    """The other replica was killed before and is eligible: it has everything, so it leads."""
    with powered_cluster(folder, NODES, SETTINGS) as cluster:
        create_on_nodes(cluster, 1, 2)
        with ReplicatedLoad(cluster.bootstrap_servers, TOPIC, transactions=False) as load:
            cluster.kill(2)
            wait_while(lambda: "" if isrs(cluster) == [{1}] * PARTITIONS else f"in-sync replicas are {isrs(cluster)}")
            cluster.lose_power(1, seed=seed)
            cluster.start(1, 2)
            load.wait_for_progress()
            wait_until_in_sync(cluster.bootstrap_servers, TOPIC, count=2)
            assert_clean(load)
        assert_something_was_lost(cluster)
        kill_and_compare(cluster, nodes=2)


def test_all_replicas_that_lose_power_at_once_unflushed_agree_on_a_prefix(tmp_path: Path) -> None:
    lose_power_of_all_unflushed(tmp_path, 0)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_all_replicas_that_lose_power_at_once_unflushed_agree_with_any_seed(tmp_path: Path, seed: int) -> None:
    lose_power_of_all_unflushed(tmp_path, seed)


def lose_power_of_all_unflushed(folder: Path, seed: int) -> None:
    with powered_cluster(folder, NODES, SETTINGS) as cluster:
        create_topic(cluster.bootstrap_servers, replicas=NODES)
        load = Load(cluster.bootstrap_servers, most_waiting=MOST_WAITING, **IDEMPOTENT)
        load.wait_for_more(ACKS)
        cluster.kill()
        load.abandon()
        cluster.lose_power(seed=seed)
        cluster.start()
        wait_until_in_sync(cluster.bootstrap_servers, LOAD_TOPIC)
        print(verdict_on_a_prefix(cluster.bootstrap_servers, load))
        kill_and_compare(cluster, LOAD_TOPIC, LOAD_PARTITIONS)


def create_on_nodes(cluster: PoweredCluster, *nodes: int) -> None:
    admin = AdminClient(client_settings(cluster.bootstrap_servers))
    topic = NewTopic(TOPIC, PARTITIONS, replica_assignment=[list(nodes)] * PARTITIONS)
    admin.create_topics([topic])[TOPIC].result(WAIT_S)
    wait_until_in_sync(cluster.bootstrap_servers, TOPIC, count=len(nodes))


def isrs(cluster: PoweredCluster) -> list[set[int]]:
    return [isr for _, isr in in_sync(cluster.bootstrap_servers, TOPIC).values()]


def assert_something_was_lost(cluster: PoweredCluster) -> None:
    """Checks that the power losses changed a disk; otherwise they test nothing."""
    assert sum(machine.changed_files + machine.changed_names for machine in cluster.machines.values())
