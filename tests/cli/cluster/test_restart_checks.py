"""Which restarts take something offline, on clusters that are written down here."""

import re
from collections.abc import Sequence

import pytest

from quire.cli.cluster.restart_checks import ClusterView, PartitionView, missing, next_to_restart, obstacles
from quire.client.admin.quorum import Quorum, QuorumMember

NOW_MS = 1_000_000


def partition(name: str, replicas: Sequence[int], isr: Sequence[int] | None = None, min_isr: int = 1) -> PartitionView:
    return PartitionView(name, tuple(replicas), frozenset(replicas if isr is None else isr), min_isr)


def quorum(voters: Sequence[int] = (1, 2, 3), *, leader: int = 1, silent: Sequence[int] = (), lag: int = 0) -> Quorum:
    def member(node: int) -> QuorumMember:
        fetched_ms = NOW_MS - 60_000 if node in silent else NOW_MS
        return QuorumMember(node, bytes(16), 10, lag if node != leader else 0, fetched_ms, fetched_ms, [])

    return Quorum(leader, 5, 10, [member(node) for node in voters], [])


def cluster(*partitions: PartitionView, down: Sequence[int] = (), found: Quorum | None = None) -> ClusterView:
    return ClusterView(dict.fromkeys((1, 2, 3)), frozenset({1, 2, 3}) - frozenset(down), partitions, found or quorum())


def kinds(view: ClusterView, node: int) -> list[str]:
    return [each.kind for each in obstacles(view, node)]


def test_any_node_of_a_healthy_cluster_may_stop() -> None:
    view = cluster(partition("orders-0", (1, 2, 3), min_isr=2), partition("orders-1", (2, 3, 1), min_isr=2))
    assert [kinds(view, node) for node in (1, 2, 3)] == [[], [], []]


@pytest.mark.parametrize(
    ("held", "kind", "passes"),
    [
        (partition("a-0", (2,)), "only-replica", False),
        (partition("a-0", (1, 2, 3), (2,)), "last-in-sync", True),
        (partition("a-0", (1, 2, 3), (1, 2), min_isr=2), "min-isr", True),
        (partition("a-0", (1, 2), min_isr=2), "min-isr", False),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_node_that_a_partition_needs_must_not_stop(held: PartitionView, kind: str, passes: bool) -> None:
    view = cluster(held, partition("b-0", (1, 3)))
    (found,) = obstacles(view, 2)
    assert (found.kind, found.passes, found.partitions) == (kind, passes, ("a-0",))
    assert "1 partition would" in found.sentence and "a-0" in found.sentence
    assert obstacles(view, 3) == [], "it has no replica of it, or one that is not in sync"


def test_a_replica_that_is_not_in_sync_may_stop() -> None:
    assert kinds(cluster(partition("a-0", (1, 2, 3), (1, 3), min_isr=2)), 2) == []


def test_long_lists_of_partitions_are_cut_in_the_sentence_only() -> None:
    (found,) = obstacles(cluster(*(partition(f"a-{index}", (2,)) for index in range(1_007))), 2)
    assert "1,007 partitions" in found.sentence and "a-4 and 1,002 more" in found.sentence
    assert len(found.partitions) == 1_007


@pytest.mark.parametrize(
    ("found", "node", "says"),
    [
        (quorum((1,)), 1, "node 1 is the only controller"),
        (quorum((1, 2)), 2, "without node 2, 1 of 2 controllers would be up"),
        (quorum(silent=(3,)), 2, r"1 of 3 controllers would be up \(node 3 is down\), which is no majority: start"),
        (quorum((1, 2, 3, 4, 5), silent=(4, 5)), 2, r"2 of 5 controllers would be up \(nodes 4, 5 are down\)"),
    ],
)
def test_a_majority_of_the_controllers_must_stay(found: Quorum, node: int, says: str) -> None:
    (obstacle,) = obstacles(cluster(found=found), node)
    assert obstacle.kind == "quorum"
    assert re.search(says, obstacle.sentence)


def test_a_controller_that_is_down_already_may_be_restarted() -> None:
    assert kinds(cluster(found=quorum(silent=(3,))), 3) == []
    assert kinds(cluster(found=quorum(silent=(3,))), 4) == [], "a node that does not vote"


def test_a_controller_whose_broker_does_not_serve_counts_as_down_at_once() -> None:
    assert kinds(cluster(down=(3,)), 2) == ["quorum"]


def test_without_an_active_controller_no_node_may_stop() -> None:
    view = ClusterView(dict.fromkeys((1, 2, 3)), frozenset({1, 2, 3}), [], None)
    assert kinds(view, 2) == ["no-controller"] and missing(view, 2) == ["there is no active controller"]


def test_a_node_is_back_when_it_serves_is_in_sync_and_follows_the_metadata_log() -> None:
    whole, behind = partition("a-0", (1, 2, 3)), partition("a-1", (1, 2, 3), (1, 3))
    assert missing(cluster(whole), 2) == []
    assert missing(cluster(whole, behind), 2) == ["1 partition not in sync (a-1)"]
    assert missing(cluster(whole, behind), 1) == []
    assert missing(cluster(whole, down=(2,)), 2) == ["it does not serve yet"]
    late = cluster(whole, found=quorum(silent=(2,), lag=4))
    assert missing(late, 2) == ["it has not caught up with the metadata log"]
    assert missing(late, 9) == ["the cluster does not know it"]


def test_the_active_controller_is_restarted_last() -> None:
    view = cluster(found=quorum(leader=2))
    assert next_to_restart(view, [1, 2, 3]) == 1
    assert next_to_restart(view, [2, 3]) == 3
    assert next_to_restart(view, [2]) == 2
