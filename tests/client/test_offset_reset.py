import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.client.admin.offset_reset import Bounds, Goal, To, plan_move, plan_reset
from quire.client.errors import ClientError
from quire.client.group_offsets import OffsetAndMetadata
from quire.client.offsets import TopicPartition
from quire.client.producer import Producer
from tests.client.model_cluster import ModelCluster

TOPIC_PARTITION = TopicPartition("t", 0)
BOUNDS = Bounds(100, 200)


@pytest.mark.parametrize(
    ("goal", "before", "after"),
    [
        (Goal(To.EARLIEST), 150, 100),
        (Goal(To.EARLIEST), None, 100),
        (Goal(To.LATEST), 150, 200),
        (Goal(To.CURRENT), 150, 150),
        (Goal(To.CURRENT), None, 200),
        (Goal(To.OFFSET, 120), 150, 120),
        (Goal(To.OFFSET, 99), 150, 100),
        (Goal(To.OFFSET, 201), 150, 200),
        (Goal(To.SHIFT, 10), 150, 160),
        (Goal(To.SHIFT, -10), 150, 140),
        (Goal(To.SHIFT, -10), 105, 100),
        (Goal(To.SHIFT, 0), 20, 100),
        (Goal(To.GIVEN, offsets={TOPIC_PARTITION: 180}), None, 180),
    ],
)
def test_every_goal_has_its_offset(goal: Goal, before: int | None, after: int) -> None:
    move = plan_move(TOPIC_PARTITION, before, BOUNDS, goal)
    assert (move.before, move.after, move.lag) == (before, after, 200 - after)


@pytest.mark.parametrize(("at_time", "after"), [(130, 130), (-1, 200)])
def test_a_time_is_the_first_record_since_then_or_the_end(at_time: int, after: int) -> None:
    assert plan_move(TOPIC_PARTITION, 150, BOUNDS, Goal(To.TIME, 1), at_time).after == after


def test_a_partition_without_a_committed_offset_cannot_be_shifted() -> None:
    with pytest.raises(ClientError, match="t-0"):
        plan_move(TOPIC_PARTITION, None, BOUNDS, Goal(To.SHIFT, 1))


@given(
    st.sampled_from([To.OFFSET, To.SHIFT, To.CURRENT]),
    st.integers(-(2**63), 2**63),
    st.integers(0, 2**62),
    st.integers(0, 2**40),
    st.integers(0, 2**40),
)
def test_the_result_is_always_an_offset_of_the_partition(
    to: To, number: int, before: int, first: int, length: int
) -> None:
    bounds = Bounds(first, first + length)
    move = plan_move(TOPIC_PARTITION, before, bounds, Goal(to, number))
    assert bounds.first_offset <= move.after <= bounds.end_offset
    assert move.lag >= 0
    assert move.after == move.wanted or not bounds.first_offset <= move.wanted <= bounds.end_offset


def test_a_plan_asks_every_leader_and_changes_nothing() -> None:
    model = ModelCluster(nodes=2)
    model.create("t", 2)
    topic_partitions = [TopicPartition("t", 0), TopicPartition("t", 1)]
    producer = Producer(model.client())
    model.run(producer.prepare("t"))
    for timestamp_ms in (1000, 2000, 3000):
        producer.send("t", b"x", partition=1, timestamp_ms=timestamp_ms)
    model.wait(producer.flush())
    cluster = model.client()
    model.run(cluster.refresh(["t"]))
    moves = model.run(
        plan_reset(cluster, {topic_partitions[1]: OffsetAndMetadata(3)}, topic_partitions, Goal(To.TIME, 1500))
    )
    assert [(move.topic_partition, move.before, move.after) for move in moves] == [
        (topic_partitions[0], None, 0),
        (topic_partitions[1], 3, 1),
    ]
