"""A broker whose disk was emptied: it returns as a new replica, copies everything, and then leads alone."""

from pathlib import Path

import pytest

from tests.crash.dedicated_cluster import DedicatedCluster, dedicated_cluster
from tests.crash.real_cluster import wait_while
from tests.crash.replicated_cluster import (
    NODES,
    TOPIC,
    create_replicated,
    kill_and_compare,
    not_led_by,
    wait_until_in_sync,
)
from tests.crash.replicated_load import PartitionOffset, ReplicatedLoad
from tests.crash.verdict import UNCOMMITTED, assert_clean, missing, read_all

ONE_IS_ENOUGH = {"min.insync.replicas": "1"}
"""With these settings a single replica can commit everything."""


def test_a_broker_with_an_empty_disk_copies_everything_and_then_leads(tmp_path: Path) -> None:
    wipe(tmp_path, rounds=1)


@pytest.mark.soak
def test_brokers_with_empty_disks_copy_everything_and_then_lead(tmp_path: Path) -> None:
    wipe(tmp_path, rounds=9)


def wipe(folder: Path, rounds: int) -> None:
    with dedicated_cluster(folder, **{"replica.lag.time.max.ms": 30_000}) as cluster:
        create_replicated(cluster.bootstrap_servers, TOPIC, config=ONE_IS_ENOUGH)
        with ReplicatedLoad(cluster.bootstrap_servers, TOPIC) as load:
            for number in range(rounds):
                wipe_and_let_it_lead(cluster, load, 1 + number % NODES)
            assert_clean(load)
        kill_and_compare(cluster)


def wipe_and_let_it_lead(cluster: DedicatedCluster, load: ReplicatedLoad, wiped: int) -> None:
    others = [each for each in cluster.nodes if each != wiped]
    cluster.kill(wiped)
    load.wait_for_progress()
    cluster.replace_disk(wiped)
    cluster.start(wiped)
    wait_until_in_sync(cluster.bootstrap_servers, TOPIC)
    load.wait_for_progress()

    cluster.kill(*others)
    address = cluster.nodes[wiped].address
    wait_while(lambda: not_led_by(address, TOPIC, {wiped}))
    acknowledged = load.writer.acknowledged.copy()
    # A transaction that is open, because its coordinator was killed, hides what follows it from other readers.
    wait_while(lambda: lacking(acknowledged, read_all(address, TOPIC, UNCOMMITTED)))
    cluster.start(*others)
    load.wait_for_progress()
    wait_until_in_sync(cluster.bootstrap_servers, TOPIC)


def lacking(acknowledged: dict[PartitionOffset, bytes], stored: dict[PartitionOffset, bytes]) -> str:
    count = missing(acknowledged, stored)
    return f"{count} of {len(acknowledged)} acknowledged records cannot be read" if count else ""
