"""Heartbeats of a member that has not received its last response: they are answered once more, and confirm nothing."""

import pytest

from quire.coordinators.group.consumer.member import MemberState
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.coordinators.group.consumer.consumer_shard import ConsumerShard, assigned, beat, join, topic_id

ORDERS = topic_id("orders", -1)


@pytest.fixture
def shard() -> ConsumerShard:
    """Alice is in epoch 3 with both partitions, and should give one up.

    Her last response, which gave her the second partition, is lost: she believes that she is in epoch 2 with one.
    """
    shard = ConsumerShard({"group.consumer.assignment.interval.ms": "0"})
    shard.put_topic("orders", 1)
    shard.heartbeat(join("alice", "orders"))
    shard.put_topic("orders", 2)
    shard.heartbeat(beat("alice", 2, {ORDERS: {0}}))
    shard.heartbeat(join("bob", "orders"))
    alice = shard.group.members["alice"].current
    assert (alice.member_epoch, alice.previous_member_epoch, shard.group.assignment_epoch) == (3, 2, 4)
    return shard


@pytest.mark.parametrize("owned", [set(), {0}, {1}, {0, 1}])
def test_a_repeated_heartbeat_gets_the_current_assignment_and_takes_no_step(
    shard: ConsumerShard, owned: set[int]
) -> None:
    before = shard.group.members["alice"].current
    for _ in range(2):
        answer = shard.heartbeat(beat("alice", 2, {ORDERS: owned} if owned else {}))
        assert not isinstance(answer, ApiError)
        assert (answer.member_epoch, assigned(answer)) == (3, {ORDERS: {0, 1}})
        assert shard.group.members["alice"].current == before


def test_the_next_step_comes_with_the_first_heartbeat_of_the_current_epoch(shard: ConsumerShard) -> None:
    shard.heartbeat(beat("alice", 2, {ORDERS: {0}}))
    answer = shard.heartbeat(beat("alice", 3, {ORDERS: {0, 1}}))
    assert not isinstance(answer, ApiError)
    (kept,) = (assigned(answer) or {})[ORDERS]
    alice = shard.group.members["alice"].current
    assert (alice.member_epoch, alice.state) == (3, MemberState.UNREVOKED_PARTITIONS)
    assert set(alice.revoking[ORDERS]) == {0, 1} - {kept}


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(beat("alice", 2), id="it does not report its partitions"),
        pytest.param(beat("alice", 2, {ORDERS: {0, 2}}), id="it reports a partition that it does not own"),
        pytest.param(beat("alice", 1, {ORDERS: {0}}), id="its epoch is older than the previous one"),
        pytest.param(beat("alice", 4, {ORDERS: {0}}), id="its epoch is newer than the current one"),
    ],
)
def test_a_member_that_cannot_have_lost_one_response_is_fenced(
    shard: ConsumerShard, request_: ConsumerGroupHeartbeatRequest
) -> None:
    before = shard.group.members["alice"].current
    answer = shard.heartbeat(request_)
    assert isinstance(answer, ApiError)
    assert answer.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert shard.group.members["alice"].current == before


# --- Members that change their subscription, and have not received their last response

PAYMENTS = topic_id("payments")


def of_both_topics(interval_ms: int = 0) -> ConsumerShard:
    """Alice is in epoch 2 with all of both topics."""
    shard = ConsumerShard({"group.consumer.assignment.interval.ms": str(interval_ms)})
    shard.put_topic("orders", 2)
    shard.put_topic("payments", 1)
    shard.heartbeat(join("alice", "orders", "payments"))
    return shard


def told(shard: ConsumerShard, request: ConsumerGroupHeartbeatRequest) -> tuple[int, dict[bytes, set[int]] | None]:
    answer = shard.heartbeat(request)
    assert not isinstance(answer, ApiError), answer.message
    return answer.member_epoch, assigned(answer)


def test_a_member_that_joins_again_gets_nothing_that_it_no_longer_subscribes_to() -> None:
    shard = of_both_topics()
    for _ in range(2):
        assert told(shard, join("alice", "payments")) == (2, {PAYMENTS: {0}})
        alice = shard.group.members["alice"].current
        assert (alice.state, alice.revoking) == (MemberState.UNREVOKED_PARTITIONS, {ORDERS: {0: 2, 1: 2}})
    assert told(shard, beat("alice", 2, {PAYMENTS: {0}})) == (3, {PAYMENTS: {0}})
    assert shard.group.members["alice"].current.is_reconciled_to(3)


def test_a_late_change_of_the_subscription_confirms_no_revocation() -> None:
    """The member may have sent it before it knew of the partitions that it owns by now."""
    shard = of_both_topics()
    told(shard, join("alice", "payments"))
    assert told(shard, beat("alice", 2)) == (2, {PAYMENTS: {0}})
    assert shard.group.members["alice"].current.revoking == {ORDERS: {0: 2, 1: 2}}


def test_a_late_member_may_repeat_its_epoch_although_its_subscription_has_changed() -> None:
    shard = of_both_topics()
    shard.put_topic("orders", 3)
    told(shard, beat("alice", 2, {ORDERS: {0, 1}, PAYMENTS: {0}}))
    late = beat("alice", 2, {ORDERS: {0, 1}, PAYMENTS: {0}}, subscribed_topic_names=["payments"])
    for _ in range(2):
        assert told(shard, late) == (3, {PAYMENTS: {0}})


@pytest.mark.parametrize("interval_ms", [0, 1000])
def test_a_member_is_told_of_partitions_whose_revocation_it_would_not_confirm_otherwise(interval_ms: int) -> None:
    """It would report nothing: without the partitions that it was never told of, its assignment is what it reported."""
    shard = of_both_topics(interval_ms)
    assert told(shard, join("alice")) == (2, {ORDERS: {0, 1}, PAYMENTS: {0}})
    owned = {ORDERS: {0, 1}, PAYMENTS: {0}}
    full = beat("alice", 2, owned, subscribed_topic_names=[], rebalance_timeout_ms=60_000)
    assert told(shard, full) == (2, {})
    shard.wait(interval_ms)
    assert told(shard, beat("alice", 2, {})) == (3, None)
    assert shard.group.members["alice"].current.is_reconciled_to(3)
