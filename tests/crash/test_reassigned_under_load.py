"""Replicas move while clients work, and kill -9 ends the active controller, the leader or the new replica meanwhile.

Every reassignment is complete in the end, and nothing that was acknowledged is lost or doubled.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from quire.client.admin.reassignments import Reassignment, list_reassignments, reassign_partitions
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.testing import Cluster
from tests.crash.real_cluster import wait_while
from tests.crash.replicated_cluster import (
    REPLICATED,
    TOPIC,
    create_replicated,
    in_sync,
    kill_and_compare,
    leaders_of,
    wait_until_in_sync,
)
from tests.crash.replicated_load import PARTITIONS, WAIT_S, ReplicatedLoad
from tests.crash.verdict import assert_clean

NODES = (1, 2, 3, 4)
SLOW_MS = 150
"""So that copying takes long enough to be interrupted."""
MOVES = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]

Victim = Callable[[Cluster, Sequence[int]], int]


def test_no_acknowledged_record_is_lost_when_nodes_are_killed_during_reassignments() -> None:
    with Cluster(nodes=len(NODES), config=REPLICATED, start_timeout_s=WAIT_S) as cluster:
        create_replicated(cluster.bootstrap_servers, TOPIC)
        reassign(cluster, (1, 2, 3))
        wait_until_moved(cluster, (1, 2, 3))
        with ReplicatedLoad(cluster.bootstrap_servers, TOPIC) as load:
            interrupted = move_and_kill(cluster, load, (4, 2, 3), the_active_controller)
            interrupted += move_and_kill(cluster, load, (4, 1, 2), the_leader_that_goes)
            interrupted += move_and_kill(cluster, load, (3, 4, 1), the_new_replica)
            interrupted += move_and_kill(cluster, load, (2, 3, 1), the_new_replica)
            assert interrupted, "no reassignment was in progress when a node was killed"
            wait_until_moved(cluster, (2, 3, 1))
            load.wait_for_progress()
            assert_clean(load)
        wait_while(lambda: "" if not logs_of(cluster.data_dir / "node-4") else "the removed replicas are still there")
        kill_and_compare(cluster, nodes=3)
        assert "Traceback" not in cluster.log()


def the_active_controller(cluster: Cluster, _target: Sequence[int]) -> int:
    return cluster.controller


def the_leader_that_goes(cluster: Cluster, target: Sequence[int]) -> int:
    leaders = list(leaders_of(cluster).values())
    return next((each for each in leaders if each not in target), leaders[0])


def the_new_replica(cluster: Cluster, target: Sequence[int]) -> int:
    replicas = {each for _, isr in in_sync(cluster.bootstrap_servers, TOPIC).values() for each in isr}
    return next((each for each in target if each not in replicas), target[0])


def move_and_kill(cluster: Cluster, load: ReplicatedLoad, target: Sequence[int], choose: Victim) -> int:
    """How many partitions were still being reassigned when the victim was dead."""
    with slow_followers(cluster):
        victim = choose(cluster, target)
        reassign(cluster, target)
        cluster.kill(victim)
        with client_of(cluster, without=victim) as client:
            left = len(client.run(list_reassignments(client.cluster, MOVES), WAIT_S * 1000))
        load.wait_for_progress()
        cluster.restart(victim)
    wait_until_moved(cluster, target)
    load.wait_for_progress()
    return left


@contextmanager
def slow_followers(cluster: Cluster) -> Iterator[None]:
    for node in NODES:
        cluster.delay("Fetch", SLOW_MS, required=False, node=node)
    yield
    cluster.clear_faults()


@contextmanager
def client_of(cluster: Cluster, without: int | None = None) -> Iterator[BlockingClient]:
    addresses = cluster.bootstrap_servers.split(",")
    servers = [each for node, each in zip(cluster.nodes, addresses, strict=True) if node != without]
    with BlockingClient(",".join(servers)) as client:
        yield client


def reassign(cluster: Cluster, target: Sequence[int]) -> None:
    """Every partition has another one of them first, so that all of them lead."""
    wanted = {
        each: [*target[number % len(target) :], *target[: number % len(target)]] for number, each in enumerate(MOVES)
    }
    with client_of(cluster) as client:
        results = client.run(reassign_partitions(client.cluster, wanted), WAIT_S * 1000)
    assert all(failed is None for failed in results.values()), results


def wait_until_moved(cluster: Cluster, target: Sequence[int]) -> None:
    with client_of(cluster) as client:

        def left() -> str:
            ongoing: dict[TopicPartition, Reassignment] = client.run(
                list_reassignments(client.cluster, MOVES), WAIT_S * 1000
            )
            return "" if not ongoing else f"still being reassigned: {ongoing}"

        wait_while(left)
    wait_until_in_sync(cluster.bootstrap_servers, TOPIC)
    found = in_sync(cluster.bootstrap_servers, TOPIC)
    assert all(isr == set(target) for _, isr in found.values()), found


def logs_of(data: Path) -> list[str]:
    return [each.name for each in data.iterdir() if each.name in {f"{TOPIC}-{each}" for each in range(PARTITIONS)}]
