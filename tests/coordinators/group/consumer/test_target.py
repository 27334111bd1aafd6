"""When a group gets a new target, and what members get while they wait for it."""

from quire.protocol.errors import ApiError
from quire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from tests.coordinators.group.consumer.consumer_shard import ConsumerShard, assigned, beat, join

HEARTBEAT_INTERVAL_MS = 5_000


def answered(answer: ConsumerGroupHeartbeatResponse | ApiError) -> ConsumerGroupHeartbeatResponse:
    assert not isinstance(answer, ApiError), answer.message
    return answer


def test_a_member_that_joins_right_after_the_last_one_left_does_not_wait() -> None:
    shard = ConsumerShard({"group.consumer.assignment.interval.ms": "1000"})
    shard.put_topic("orders", 4)
    answered(shard.heartbeat(join("alice", "orders")))
    answered(shard.heartbeat(beat("alice", -1)))
    partitions = assigned(answered(shard.heartbeat(join("bob", "orders"))))
    assert partitions is not None and sum(map(len, partitions.values())) == 4


def test_a_member_that_comes_before_a_new_target_may_be_made_is_asked_back_when_it_may_be() -> None:
    shard = ConsumerShard({"group.consumer.assignment.interval.ms": "1000"})
    shard.put_topic("orders", 4)
    first = answered(shard.heartbeat(join("alice", "orders")))
    assert first.heartbeat_interval_ms == HEARTBEAT_INTERVAL_MS
    shard.wait(300)
    second = answered(shard.heartbeat(join("bob", "orders")))
    assert not assigned(second)
    assert second.heartbeat_interval_ms == 700
    shard.wait(700)
    answered(shard.heartbeat(beat("bob", second.member_epoch)))
    told = answered(shard.heartbeat(beat("alice", first.member_epoch)))
    assert told.heartbeat_interval_ms == HEARTBEAT_INTERVAL_MS
    partitions = assigned(told)
    assert partitions is not None
    assert sum(map(len, partitions.values())) == 2, "bob is to have the others"
