"""A long computation of a target takes turns: other requests run between them, and may change the group."""

import pytest

from quire.coordinators.group.consumer import target
from quire.coordinators.group.consumer.assignors import turns
from quire.coordinators.group.consumer.target_runs import ASK_AGAIN_MS
from quire.metadata.image import ClusterImage, PartitionImage, TopicImage
from quire.protocol.errors import ApiError
from quire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from tests.coordinators.group.consumer.consumer_shard import GROUP, ConsumerShard, assigned, beat, join, topic_id

HEARTBEAT_INTERVAL_MS = 5_000
AT_ONCE = {"group.consumer.assignment.interval.ms": "0"}


@pytest.fixture
def shard(monkeypatch: pytest.MonkeyPatch) -> ConsumerShard:
    """Every target takes many turns."""
    monkeypatch.setattr(target, "_MOST_AT_ONCE", 0)
    monkeypatch.setattr(turns, "WORK_PER_TURN", 1)
    shard = ConsumerShard(AT_ONCE)
    shard.put_topic("orders", 6)
    return shard


def answered(answer: ConsumerGroupHeartbeatResponse | ApiError) -> ConsumerGroupHeartbeatResponse:
    assert not isinstance(answer, ApiError), answer.message
    return answer


def is_being_made(shard: ConsumerShard) -> bool:
    return ("target", GROUP) in shard.timers.keys


def owned(shard: ConsumerShard, member_id: str) -> set[int]:
    return {number for numbers in shard.group.targets.get(member_id, {}).values() for number in numbers}


def test_a_member_that_needs_a_target_is_answered_before_it_exists_and_called_back_soon(shard: ConsumerShard) -> None:
    first = answered(shard.heartbeat(join("alice", "orders")))
    assert not assigned(first)
    assert first.member_epoch == 1, "in epoch 0 it would not be a member"
    assert first.heartbeat_interval_ms == ASK_AGAIN_MS
    assert shard.group.state_name == "Assigning"
    shard.wait(ASK_AGAIN_MS)
    told = answered(shard.heartbeat(beat("alice", 1)))
    partitions = assigned(told)
    assert partitions is not None and sum(map(len, partitions.values())) == 6
    assert (told.member_epoch, told.heartbeat_interval_ms) == (2, HEARTBEAT_INTERVAL_MS)
    assert shard.group.state_name == "Stable"


def test_heartbeats_are_answered_between_turns(shard: ConsumerShard) -> None:
    answered(shard.heartbeat(join("alice", "orders")))
    served = 0
    while is_being_made(shard):
        answered(shard.heartbeat(beat("alice", 1)))
        served += 1
        shard.clock.step()
    assert served > 5
    assert owned(shard, "alice") == set(range(6))


def test_members_that_join_during_the_computation_get_their_share_from_the_next_target(shard: ConsumerShard) -> None:
    answered(shard.heartbeat(join("alice", "orders")))
    shard.clock.step()
    answered(shard.heartbeat(join("bob", "orders")))
    shard.wait(0)
    assert (shard.group.assignment_epoch, shard.group.group_epoch) == (2, 3)
    assert "bob" not in shard.group.targets
    answered(shard.heartbeat(beat("bob", 1)))
    shard.wait(0)
    assert shard.group.assignment_epoch == 3
    assert len(owned(shard, "alice")) == len(owned(shard, "bob")) == 3


def test_members_that_leave_during_the_computation_get_nothing(shard: ConsumerShard) -> None:
    answered(shard.heartbeat(join("alice", "orders")))
    answered(shard.heartbeat(join("bob", "orders")))
    shard.clock.step()
    answered(shard.heartbeat(beat("bob", -1)))
    shard.wait(0)
    assert "bob" not in shard.group.targets
    answered(shard.heartbeat(beat("alice", 1)))
    shard.wait(0)
    assert owned(shard, "alice") == set(range(6))


def test_a_static_member_that_returns_under_another_id_during_the_computation_keeps_its_share(
    shard: ConsumerShard,
) -> None:
    """The topic id has changed, so what was computed for the old id is useless."""
    answered(shard.heartbeat(join("alice", "orders")))
    answered(shard.heartbeat(join("bob-1", "orders", instance_id="bob")))
    shard.wait(0)
    answered(shard.heartbeat(beat("alice", 1)))
    shard.wait(0)
    before = owned(shard, "bob-1")
    answered(shard.heartbeat(beat("bob-1", 1, instance_id="bob")))
    answered(shard.heartbeat(join("carol", "orders")))
    shard.clock.step()
    answered(shard.heartbeat(beat("bob-1", -2, instance_id="bob")))
    answered(shard.heartbeat(join("bob-2", "orders", instance_id="bob")))
    shard.wait(0)
    assert owned(shard, "bob-2") == before, "the run is given up"
    answered(shard.heartbeat(beat("carol", 3)))
    shard.wait(0)
    targets = [owned(shard, member_id) for member_id in ("alice", "bob-2", "carol")]
    assert [len(each) for each in targets] == [2, 2, 2]
    assert set.union(*targets) == set(range(6))


def test_a_coordinator_that_takes_over_during_the_computation_starts_it_again(shard: ConsumerShard) -> None:
    for number in range(3):
        answered(shard.heartbeat(join(f"member-{number}", "orders")))
    while not shard.group.targets:
        shard.clock.step()
    assert shard.group.assignment_epoch == 1, "only some of it is written"
    shard.reload()
    assert not is_being_made(shard)
    answered(shard.heartbeat(beat("member-0", 1)))
    shard.wait(0)
    assert shard.group.assignment_epoch == shard.group.group_epoch
    assert set.union(*(owned(shard, f"member-{number}") for number in range(3))) == set(range(6))


def test_a_target_that_the_log_does_not_take_is_not_computed_again_until_the_group_changes(
    shard: ConsumerShard,
) -> None:
    shard.put_topic("wide", 200)
    answered(shard.heartbeat(join("alice", "wide")))
    shard.max_batch_bytes = 300
    shard.wait(0)
    assert not shard.group.targets
    told = answered(shard.heartbeat(beat("alice", 1)))
    assert told.heartbeat_interval_ms == HEARTBEAT_INTERVAL_MS
    assert not is_being_made(shard)
    shard.max_batch_bytes = None
    answered(shard.heartbeat(beat("alice", 1, subscribed_topic_names=["wide", "orders"])))
    shard.wait(0)
    assert sum(map(len, shard.group.targets["alice"].values())) == 206


def test_four_hundred_members_and_eighty_thousand_partitions_do_not_block_the_loop() -> None:
    """The work of each turn is bounded, even if all subscriptions differ; at the end every partition is assigned."""
    shard = ConsumerShard(AT_ONCE | {"group.consumer.max.size": "400"})
    image = ClusterImage(offset=1)
    for number in range(396):
        partitions = {partition: PartitionImage((1,), (1,), 1) for partition in range(200)}
        image.add_topic(TopicImage(f"topic-{number}", topic_id(f"topic-{number}"), partitions))
    shard.change_image(image)
    for number in range(400):
        topics = [f"topic-{(number + step) % 396}" for step in range(10)]
        answered(shard.heartbeat(join(f"member-{number}", *topics)))
    steps = 0
    while shard.group.assignment_epoch < shard.group.group_epoch:
        answered(shard.heartbeat(beat("member-7", shard.group.members["member-7"].current.member_epoch)))
        shard.clock.step()
        steps += 1
    loads = [sum(map(len, shard.group.targets[member_id].values())) for member_id in shard.group.members]
    assert loads == [198] * 400
    assert 10 < steps < 200
