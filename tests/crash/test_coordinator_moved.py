"""A coordinator killed in the middle of commits, rebalances and transactions: another node takes over its state."""

from functools import partial
from typing import Any

import pytest

from quire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from quire.testing import Cluster, WireConnection
from tests.crash.committing_member import PROTOCOLS, CommittingMember, Members, assert_no_commit_is_lost, kept, promised
from tests.crash.real_cluster import RealCluster, wait_until
from tests.crash.replicated_cluster import (
    TOPIC,
    address_of,
    create_replicated,
    replicated_cluster,
    run_under_load,
    running,
    wait_until_in_sync,
)
from tests.crash.replicated_load import ReplicatedLoad
from tests.wire.clients import Confluent, Message

SHARED, GROUP = "shared", "group"
GROUP_KEY, TRANSACTION_KEY = 0, 1
PARTITIONS = 6
PER_PARTITION = 200
KILLS = 2


@pytest.mark.parametrize("protocol", ["range", "consumer"])
def test_a_group_keeps_its_commits_when_its_coordinator_is_killed_in_rebalances(protocol: str) -> None:
    with replicated_cluster() as cluster:
        kill_between_rebalances(cluster, KILLS, PROTOCOLS[protocol])


@pytest.mark.soak
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_keeps_its_commits_through_many_kills(protocol: str) -> None:
    with replicated_cluster() as cluster:
        kill_between_rebalances(cluster, 10 * KILLS, PROTOCOLS[protocol])


def test_transactions_end_once_when_their_coordinator_is_killed() -> None:
    with replicated_cluster() as cluster:
        run_under_load(cluster, lambda load: kill_transaction_coordinators(cluster, load, KILLS))


@pytest.mark.soak
def test_transactions_end_once_when_their_coordinator_is_killed_again_and_again() -> None:
    with replicated_cluster() as cluster:
        run_under_load(cluster, lambda load: kill_transaction_coordinators(cluster, load, 10 * KILLS))


def kill_transaction_coordinators(cluster: Cluster, load: ReplicatedLoad, kills: int) -> None:
    assert load.transactions is not None
    for _ in range(kills):
        node = coordinator_of(cluster, load.transactions.transactional_id, TRANSACTION_KEY)
        cluster.kill(node)
        load.wait_for_progress()
        cluster.restart(node)
        wait_until_in_sync(cluster.bootstrap_servers, TOPIC)
        wait_until_in_sync(cluster.bootstrap_servers, "__transaction_state")


def kill_between_rebalances(cluster: Cluster, kills: int, settings: dict[str, Any]) -> None:
    bootstrap = cluster.bootstrap_servers
    create_replicated(bootstrap, SHARED, PARTITIONS)
    for partition in range(PARTITIONS):
        messages = [Message(b"%d" % number) for number in range(PER_PARTITION)]
        Confluent().produce(bootstrap, SHARED, messages, partition=partition)
    with Members(bootstrap, GROUP, SHARED, settings) as group:
        members = [group.join() for _ in range(2)]
        wait_until_shared_out(members)
        for number in range(kills):
            in_the_middle_of_a_rebalance = partial(has_heard_more, members[0], len(members[0].events))
            if number % 2:
                members.pop().close()
            else:
                members.append(group.join())
            wait_until(in_the_middle_of_a_rebalance, "the group does not rebalance")
            node = coordinator_of(cluster, GROUP, GROUP_KEY)
            cluster.kill(node)
            before = promised(group.everyone)
            other = coordinator_of(cluster, GROUP, GROUP_KEY, other_than=node)
            after = kept(address_of(cluster, other), GROUP, before)
            assert all(after[each] >= offset for each, offset in before.items()), (before, after)
            wait_until_shared_out(members)
            cluster.restart(node)
            wait_until_in_sync(bootstrap, "__consumer_offsets")
        wait_until(lambda: everything_is_read(group.everyone), "records are never read")
        coordinator = address_of(cluster, coordinator_of(cluster, GROUP, GROUP_KEY))
        assert_no_commit_is_lost(coordinator, GROUP, group.everyone)


def coordinator_of(cluster: Cluster | RealCluster, key: str, key_type: int, *, other_than: int | None = None) -> int:
    """The coordinator, as soon as all running nodes agree on it."""
    found: set[int] = set()

    def is_known() -> bool:
        found.clear()
        found.update(asked_for_coordinator(address_of(cluster, node), key, key_type) for node in running(cluster))
        return len(found) == 1 and not found & {-1, other_than}

    wait_until(is_known, f"{key} has no coordinator")
    return found.pop()


def asked_for_coordinator(address: str, key: str, key_type: int) -> int:
    with WireConnection(address) as connection:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        (found,) = connection.call(request, 4, FindCoordinatorResponse).coordinators
        return found.node_id


def wait_until_shared_out(members: list[CommittingMember]) -> None:
    everything = {(SHARED, partition) for partition in range(PARTITIONS)}

    def is_shared_out() -> bool:
        owned = [set(each.assigned) for each in members]
        return all(owned) and sum(map(len, owned)) == PARTITIONS and set().union(*owned) == everything

    wait_until(is_shared_out, "the partitions are not shared out")


def has_heard_more(member: CommittingMember, events: int) -> bool:
    return len(member.events) > events


def everything_is_read(members: list[CommittingMember]) -> bool:
    return len({(got.partition, got.offset) for each in members for got in list(each.received)}) == (
        PARTITIONS * PER_PARTITION
    )
