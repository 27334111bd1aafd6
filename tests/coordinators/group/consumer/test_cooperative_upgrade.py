"""A classic group becomes a consumer group during its own rebalance: members keep what they still own."""

import pytest

from tests.coordinators.group.consumer.classic_consumer import ClassicConsumer
from tests.coordinators.group.consumer.consumer_shard import ConsumerShard, assigned, beat, join

ALL = {0, 1, 2, 3}


@pytest.fixture
def shard() -> ConsumerShard:
    shard = ConsumerShard({"group.consumer.assignment.interval.ms": "0", "group.initial.rebalance.delay.ms": "0"})
    shard.put_topic("orders", 4)
    return shard


def cooperative(shard: ConsumerShard, name: str) -> ClassicConsumer:
    return ClassicConsumer(shard, name, ("orders",), None, is_cooperative=True)


def with_everything(shard: ConsumerShard) -> ClassicConsumer:
    """Ada, who has read all partitions alone."""
    ada = cooperative(shard, "ada")
    joining = ada.join()
    shard.wait(0)
    ada.sync(joining)
    assert ada.has == {"orders": ALL}
    return ada


def given_to_alice(shard: ConsumerShard) -> set[int]:
    answer = shard.heartbeat(join("alice", "orders"))
    told = assigned(answer)  # type: ignore[arg-type]
    assert told is not None
    return {number for numbers in told.values() for number in numbers}


def owned_in_group(shard: ConsumerShard, member_id: str) -> set[int]:
    return {number for numbers in shard.group.members[member_id].current.assigned.values() for number in numbers}


def test_a_partition_that_a_member_is_about_to_lose_is_not_free_yet(shard: ConsumerShard) -> None:
    ada = with_everything(shard)
    cooperative(shard, "bea").join()
    ada.beat()
    _, syncing = ada.ask_for_assignment(ada.join().value)
    # The new generation has only 0 and 2 for ada, who has not been told yet.
    assert given_to_alice(shard) == set()
    assert owned_in_group(shard, ada.member_id) == ALL
    # She revokes the others and reports it, so they are free.
    assert syncing is not None
    assert ada.take_assignment(syncing.value).endswith("has orders 0,2")
    while ada.beat() == "REBALANCE_IN_PROGRESS":
        ada.sync(ada.join())
    shared = assigned(shard.heartbeat(beat("alice", shard.group.members["alice"].current.member_epoch)))  # type: ignore[arg-type]
    assert shared is not None
    assert not ada.has["orders"] & {number for numbers in shared.values() for number in numbers}


def test_members_keep_what_they_had_when_a_rebalance_was_interrupted(shard: ConsumerShard) -> None:
    ada = with_everything(shard)
    cooperative(shard, "bea").join()
    ada.beat()
    ada.join()
    # The join phase ends, and the next rebalance starts before a leader has sent an assignment.
    cooperative(shard, "cleo").join()
    assert given_to_alice(shard) == set()
    assert owned_in_group(shard, ada.member_id) == ALL


def test_if_two_members_claim_a_partition_the_later_generation_wins(shard: ConsumerShard) -> None:
    ada, bea = cooperative(shard, "ada"), cooperative(shard, "bea")
    ada.has, ada.generation = {"orders": {0, 1}}, 3
    bea.has, bea.generation = {"orders": {1, 2}}, 4
    ada.join()
    bea.join()
    shard.wait(0)
    given_to_alice(shard)
    assert owned_in_group(shard, ada.member_id) == {0}
    assert owned_in_group(shard, bea.member_id) == {1, 2}
