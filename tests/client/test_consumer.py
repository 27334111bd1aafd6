"""The consumer against a model of a cluster: where reading starts, and how it continues after errors and moves."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quire.client.consumer import BEGINNING, CURRENT, END, Consumer, ConsumerConfig, Start
from quire.client.errors import ClientError
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ApiError, ErrorCode
from quire.steps import perform
from simulator.network import Conditions
from tests.client.model_cluster import ModelCluster
from tests.client.model_topic import FIRST, reading, take, write


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (BEGINNING, [b"a", b"b", b"c"]),
        (Start(offset=1), [b"b", b"c"]),
        (Start(timestamp_ms=2500), [b"c"]),
        (Start(timestamp_ms=2000), [b"b", b"c"]),
    ],
)
def test_reading_starts_where_requested(start: Start, expected: list[bytes]) -> None:
    model = ModelCluster()
    model.create("t")
    write(model, 0, b"a", b"b", b"c")
    consumer = reading(model, {FIRST: start})
    assert [value for _, _, value in take(model, consumer, len(expected))] == expected


@pytest.mark.parametrize("start", [END, Start(timestamp_ms=99_999)])
def test_reading_from_the_end_shows_only_what_comes_later(start: Start) -> None:
    model = ModelCluster()
    model.create("t")
    write(model, 0, b"old")
    consumer = reading(model, {FIRST: start})
    write(model, 0, b"new")
    assert take(model, consumer, 1) == [(0, 1, b"new")]


def test_all_partitions_of_all_leaders_are_read() -> None:
    model = ModelCluster(nodes=3)
    model.create("t", partitions=5)
    for partition in range(5):
        write(model, partition, b"a%d" % partition, b"b%d" % partition)
    consumer = reading(model, {TopicPartition("t", index): BEGINNING for index in range(5)})
    found = take(model, consumer, 10)
    assert sorted(value for _, _, value in found if value) == sorted(
        [b"a%d" % index for index in range(5)] + [b"b%d" % index for index in range(5)]
    )
    assert consumer.positions == {TopicPartition("t", index): 2 for index in range(5)}


def test_fetched_records_that_were_not_taken_do_not_count_as_read() -> None:
    model = ModelCluster()
    model.create("t")
    write(model, 0, b"a", b"b")
    consumer = reading(model, {FIRST: BEGINNING})
    model.wait(consumer.arrival())
    assert consumer.positions == {FIRST: 0}
    consumer.poll()
    assert consumer.positions == {FIRST: 2}


def test_records_read_while_new_partitions_are_looked_up_are_not_read_again() -> None:
    model = ModelCluster()
    model.create("t", partitions=2)
    write(model, 0, b"a", b"b")
    write(model, 1, b"c")
    consumer = reading(model, {FIRST: BEGINNING})
    model.wait(consumer.arrival())
    change = perform(consumer.assign({FIRST: CURRENT, TopicPartition("t", 1): BEGINNING}))
    assert not change.done
    handed_over = [record.value for fetched in consumer.poll() for record in fetched.records()]
    assert handed_over
    assert model.wait(change) is None
    left = [value for _, _, value in take(model, consumer, 3 - len(handed_over))]
    assert sorted(value for value in handed_over + left if value) == [b"a", b"b", b"c"]
    model.clock.run_for(10_000)
    assert consumer.poll() == []


SECOND = TopicPartition("t", 1)


def test_a_leader_that_moves_is_followed_without_loss_or_repeat() -> None:
    model = ModelCluster(nodes=2)
    model.create("t")
    write(model, 0, b"a")
    consumer = reading(model, {FIRST: BEGINNING})
    found = take(model, consumer, 1)
    model.move("t", 0, leader=2)
    write(model, 0, b"b")
    found += take(model, consumer, 1)
    assert found == [(0, 0, b"a"), (0, 1, b"b")]


def test_refusals_that_pass_are_tried_again() -> None:
    model = ModelCluster()
    model.create("t")
    write(model, 0, b"a")
    model.refuse("Fetch", ErrorCode.UNKNOWN_LEADER_EPOCH, count=3)
    assert take(model, reading(model, {FIRST: BEGINNING}), 1) == [(0, 0, b"a")]


def test_a_missing_offset_is_an_error_that_names_it() -> None:
    model = ModelCluster()
    model.create("t")
    consumer = reading(model, {FIRST: Start(offset=50)})
    model.wait(consumer.arrival())
    with pytest.raises(ApiError, match="offset 50 of t-0 does not exist"):
        consumer.poll()


def test_a_missing_offset_is_reset_as_the_caller_chose() -> None:
    model = ModelCluster()
    model.create("t")
    write(model, 0, b"a")
    consumer = reading(model, {FIRST: Start(offset=50)}, ConsumerConfig(reset=BEGINNING))
    assert take(model, consumer, 1) == [(0, 0, b"a")]


@pytest.mark.parametrize("error", [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
def test_trouble_ahead_waits_until_what_was_read_before_is_taken(error: ErrorCode) -> None:
    model = ModelCluster()
    model.create("t")
    write(model, 0, b"a", b"b")
    moves: list[int] = []
    config = ConsumerConfig(reset=END, partition_max_bytes=1)
    consumer = Consumer(model.client(), config, lambda topic_partition, offset: moves.append(offset))
    model.run(consumer.assign({FIRST: BEGINNING}))
    model.wait(consumer.arrival())
    model.refuse("Fetch", error, count=2)
    model.clock.run_for(5000)
    assert moves == []
    assert [record.value for fetched in consumer.poll() for record in fetched.records()] == [b"a"]
    model.clock.run_for(5000)
    if error == ErrorCode.OFFSET_OUT_OF_RANGE:
        assert moves == [2]
    else:
        with pytest.raises(ApiError, match="t-0 cannot be read at offset 1"):
            consumer.poll()


def test_the_position_is_requested_until_a_broker_knows_it() -> None:
    model = ModelCluster()
    model.create("t")
    write(model, 0, b"a")
    consumer = reading(model, {FIRST: Start(offset=50)}, ConsumerConfig(reset=BEGINNING))
    model.network.crash("node-1")
    model.clock.run_for(100_000)
    model.start(1)
    assert take(model, consumer, 1) == [(0, 0, b"a")]


def test_a_partition_that_does_not_exist_cannot_be_assigned() -> None:
    model = ModelCluster()
    model.create("t")
    with pytest.raises(ApiError, match="t-7 does not exist"):
        reading(model, {TopicPartition("t", 7): BEGINNING})


def test_a_topic_that_is_deleted_while_it_is_read_is_an_error() -> None:
    model = ModelCluster()
    model.create("t")
    consumer = reading(model, {FIRST: BEGINNING})
    del model.topics["t"]
    model.wait(consumer.arrival())
    with pytest.raises(ApiError, match="was deleted"):
        consumer.poll()


def test_errors_that_do_not_pass_are_raised() -> None:
    model = ModelCluster()
    model.create("t")
    model.refuse("Fetch", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    consumer = reading(model, {FIRST: BEGINNING})
    model.wait(consumer.arrival())
    with pytest.raises(ApiError, match="TOPIC_AUTHORIZATION_FAILED"):
        consumer.poll()


def test_reading_continues_after_a_cluster_was_away() -> None:
    model = ModelCluster()
    model.create("t")
    write(model, 0, b"a")
    consumer = reading(model, {FIRST: BEGINNING})
    found = take(model, consumer, 1)
    model.network.crash("node-1")
    model.clock.run_for(5000)
    model.start(1)
    write(model, 0, b"b")
    assert found + take(model, consumer, 1) == [(0, 0, b"a"), (0, 1, b"b")]


def test_a_closed_consumer_asks_for_nothing_more() -> None:
    model = ModelCluster()
    model.create("t")
    consumer = reading(model, {FIRST: BEGINNING})
    consumer.close()
    model.clock.run_for(2000)
    before = len(model.requests)
    model.clock.run_for(10_000)
    assert len(model.requests) == before


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_through_breaks_and_moves_every_record_is_read_once_and_in_order(seed: int) -> None:
    model = ModelCluster(seed, nodes=3)
    model.create("t", partitions=3)
    for partition in range(3):
        write(model, partition, *[b"%d" % number for number in range(20)])
    model.network.conditions = Conditions(break_chance=0.03, slow_chance=0.05, slow_ms=100)
    chance = model.random.stream("events")
    consumer = Consumer(model.client(request_timeout_ms=2000), ConsumerConfig(partition_max_bytes=200, max_wait_ms=50))
    starts = {TopicPartition("t", index): BEGINNING for index in range(3)}
    while True:
        try:
            model.run(consumer.assign(starts))
            break
        except ClientError:
            continue
    found: list[tuple[int, int, bytes | None]] = []
    while len(found) < 60:
        if chance.chance(0.1):
            model.move("t", chance.below(3), leader=1 + chance.below(3))
        found += take(model, consumer, 1)
    for partition in range(3):
        assert [(offset, value) for topic_partition, offset, value in found if topic_partition == partition] == [
            (number, b"%d" % number) for number in range(20)
        ]
