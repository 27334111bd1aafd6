"""Two of three brokers lost: nothing more is acknowledged with acks=all, and nothing that was acknowledged is lost.

If the controller is a separate node, the survivor becomes the leader of all partitions. Reads work up to its high
watermark, which does not move until another replica is in sync. Nodes that are also the
controllers lose the majority of these too: nothing is elected, and the survivor serves only what it led.
"""

import itertools
from collections.abc import Iterable
from pathlib import Path

import pytest

from quire.protocol.errors import ErrorCode
from quire.testing import Cluster, WireConnection
from tests.crash.dedicated_cluster import DedicatedCluster, dedicated_cluster
from tests.crash.real_cluster import wait_while
from tests.crash.replicated_cluster import (
    TOPIC,
    address_of,
    create_replicated,
    in_sync,
    replicated_cluster,
    wait_until_in_sync,
)
from tests.crash.replicated_load import PARTITIONS, PartitionOffset, ReplicatedLoad
from tests.crash.verdict import assert_clean, missing, read_all
from tests.wire.batches import batch
from tests.wire.raw import fetch, produce, records_of

SHORT_MS = 500
ROUNDS = 5


def test_the_last_broker_refuses_writes_and_serves_reads_if_the_controllers_are_others(tmp_path: Path) -> None:
    with dedicated_cluster(tmp_path) as cluster:
        lose_two_brokers(cluster, survivors=[1])


@pytest.mark.soak
def test_each_last_broker_refuses_writes_and_serves_reads_if_the_controllers_are_others(tmp_path: Path) -> None:
    with dedicated_cluster(tmp_path) as cluster:
        lose_two_brokers(cluster, survivors=ROUNDS * list(cluster.nodes))


def test_the_last_combined_node_elects_nothing_and_serves_what_it_led() -> None:
    with replicated_cluster() as cluster:
        lose_two_combined_nodes(cluster, 1)


@pytest.mark.soak
def test_the_last_combined_node_elects_nothing_again_and_again() -> None:
    with replicated_cluster() as cluster:
        lose_two_combined_nodes(cluster, 3 * ROUNDS)


def lose_two_brokers(cluster: DedicatedCluster, survivors: Iterable[int]) -> None:
    create_replicated(cluster.bootstrap_servers, TOPIC)
    with ReplicatedLoad(cluster.bootstrap_servers, TOPIC) as load:
        readable: dict[PartitionOffset, bytes] = {}
        for survivor in survivors:
            lost = [each for each in cluster.nodes if each != survivor]
            cluster.kill(*lost)
            address = cluster.nodes[survivor].address
            wait_while(lambda address=address, survivor=survivor: not_alone(address, survivor))  # type: ignore[misc]
            readable |= read_all(address, TOPIC)
            assert {partition for partition, _ in readable} == set(range(PARTITIONS))
            acknowledged = len(load.writer.acknowledged)
            for partition in range(PARTITIONS):
                assert write(address, partition) == ErrorCode.NOT_ENOUGH_REPLICAS
            assert len(load.writer.acknowledged) == acknowledged
            cluster.start(*lost)
            load.wait_for_progress()
            wait_until_in_sync(cluster.bootstrap_servers, TOPIC)
        assert_clean(load)
        assert missing(readable, read_all(cluster.bootstrap_servers, TOPIC)) == 0


def not_alone(address: str, survivor: int) -> str:
    """What is wrong unless the survivor leads every partition, and knows that no other replica is in sync."""
    found = in_sync(address, TOPIC)
    is_right = found and all(each == (survivor, {survivor}) for each in found.values())
    return "" if is_right else f"leaders and in-sync replicas are {found}"


def lose_two_combined_nodes(cluster: Cluster, times: int) -> None:
    with ReplicatedLoad(cluster.bootstrap_servers, TOPIC) as load:
        for number in range(times):
            before = led_by_several(cluster, load)
            survivor = before[number % PARTITIONS][0]
            lost = [each for each in cluster.nodes if each != survivor]
            # The first one must not be fenced, which happens as soon as it ends, while there is a majority.
            for node in lost:
                cluster.pause(node)
            for node in lost:
                cluster.kill(node)
            address = address_of(cluster, survivor)
            for partition, (leader, _) in before.items():
                if leader == survivor:
                    assert write(address, partition) == ErrorCode.REQUEST_TIMED_OUT
                    assert serves(address, partition)
                else:
                    assert write(address, partition) == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert in_sync(address, TOPIC) == before, "an election without a majority"
            cluster.restart(lost[0])
            load.wait_for_progress()
            cluster.restart(lost[1])
            wait_until_in_sync(cluster.bootstrap_servers, TOPIC)
        assert_clean(load)


def led_by_several(cluster: Cluster, load: ReplicatedLoad) -> dict[int, tuple[int, set[int]]]:
    """Leaders and ISRs. If one node leads all partitions, it is killed, so that the others share them."""
    found = in_sync(cluster.bootstrap_servers, TOPIC)
    leaders = {leader for leader, _ in found.values()}
    if len(leaders) == 1:
        (only,) = leaders
        cluster.kill(only)
        load.wait_for_progress()
        cluster.restart(only)
        wait_until_in_sync(cluster.bootstrap_servers, TOPIC)
        found = in_sync(cluster.bootstrap_servers, TOPIC)
    assert len({leader for leader, _ in found.values()}) > 1, f"leaders and in-sync replicas are {found}"
    return found


numbers = itertools.count()


def write(address: str, partition: int) -> int:
    """The error of a write with acks=all that waits for half a second."""
    with WireConnection(address) as connection:
        return produce(
            connection,
            TOPIC,
            batch([b"too late %d" % next(numbers)]),
            partition=partition,
            acks=-1,
            timeout_ms=SHORT_MS,
        ).error_code


def serves(address: str, partition: int) -> bool:
    with WireConnection(address) as connection:
        return bool(records_of(fetch(connection, TOPIC, partition=partition)))
