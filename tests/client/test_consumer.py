from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quire.client.consumer import BEGINNING, CURRENT, END, Consumer, ConsumerConfig, Start
from quire.client.errors import ClientError
from quire.client.fetched import Fetched
from quire.client.offsets import TopicPartition
from quire.client.producer import Producer, ProducerConfig
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.fetch import FetchRequest
from quire.steps import Steps, perform
from simulator.network import Conditions
from tests.client.model_cluster import ModelCluster

FIRST = TopicPartition("t", 0)


def write(model: ModelCluster, partition: int, *values: bytes) -> None:
    """Appends records directly to the model's log, each as a batch."""
    producer = Producer(model.client(), ProducerConfig(batch_bytes=1, linger_ms=0, idempotent=False))
    model.run(producer.prepare("t"))
    for index, value in enumerate(values):
        producer.send("t", value, partition=partition, timestamp_ms=1000 * (index + 1))
    model.wait(producer.flush())


def reading(model: ModelCluster, starts: dict[TopicPartition, Start], config: ConsumerConfig | None = None) -> Consumer:
    consumer = Consumer(model.client(), config)
    model.run(consumer.assign(starts))
    return consumer


def take(model: ModelCluster, consumer: Consumer, count: int) -> list[tuple[int, int, bytes | None]]:
    """(partition, offset, value) of the next `count` records."""
    found: list[tuple[int, int, bytes | None]] = []
    while len(found) < count:
        model.wait(consumer.arrival())
        for fetched in consumer.poll():
            found += [(fetched.topic_partition.partition, record.offset, record.value) for record in fetched.records()]
    return found


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


def fetches(model: ModelCluster) -> list[FetchRequest]:
    return [request for _, request in model.requests if isinstance(request, FetchRequest)]


def test_nothing_is_asked_for_behind_the_end_of_a_partition_that_has_one() -> None:
    model = ModelCluster()
    model.create("t")
    write(model, 0, b"a", b"b", b"c")
    consumer = Consumer(model.client(), ConsumerConfig(partition_max_bytes=1))
    model.run(consumer.assign({FIRST: BEGINNING}, {FIRST: 2}))
    model.clock.run_for(10_000)
    assert take(model, consumer, 2) == [(0, 0, b"a"), (0, 1, b"b")]
    model.clock.run_for(10_000)
    assert consumer.poll() == []
    assert len(fetches(model)) == 2


def test_it_reads_ahead_as_far_as_the_budget_goes_and_no_further() -> None:
    model = ModelCluster()
    model.create("t")
    write(model, 0, *[b"x" * 100] * 100)
    config = ConsumerConfig(partition_max_bytes=400, prefetch_bytes=2000)
    consumer = reading(model, {FIRST: BEGINNING}, config)
    model.clock.run_for(10_000)
    ahead = len(fetches(model))
    assert ahead > 3
    model.clock.run_for(10_000)
    assert len(fetches(model)) == ahead
    pieces: list[Fetched] = []
    while (piece := consumer._fetcher.positions[FIRST].pieces) and len(pieces) < 1000:
        assert sum(len(each.batches) for each in piece) <= 2000
        pieces += consumer.poll()
    assert [record.offset for piece in pieces for record in piece.records()] == list(range(len(pieces) * 2))
    assert len(take(model, consumer, 100 - 2 * len(pieces))) == 100 - 2 * len(pieces)


def test_partitions_that_have_nothing_yet_get_room_beside_one_that_is_full() -> None:
    model = ModelCluster()
    model.create("t", partitions=2)
    write(model, 0, *[b"x" * 100] * 100)
    config = ConsumerConfig(partition_max_bytes=400, prefetch_bytes=2000)
    consumer = reading(model, {FIRST: BEGINNING, TopicPartition("t", 1): BEGINNING}, config)
    model.clock.run_for(5000)
    write(model, 1, b"late")
    model.clock.run_for(5000)
    assert {fetched.topic_partition.partition for fetched in consumer.poll()} == {0, 1}


SECOND = TopicPartition("t", 1)


def test_a_partition_that_has_room_again_does_not_wait_for_records_in_the_others() -> None:
    model = ModelCluster()
    model.create("t", partitions=2)
    write(model, 0, *[b"x" * 100] * 100)
    config = ConsumerConfig(partition_max_bytes=400, prefetch_bytes=2000, max_wait_ms=500)
    consumer = reading(model, {FIRST: BEGINNING, SECOND: BEGINNING}, config)
    found: list[int] = []
    while len(found) < 100:
        model.clock.run_for(20)
        pieces = consumer.poll()
        assert pieces, f"nothing has arrived after record {len(found)}"
        found += [record.offset for piece in pieces for record in piece.records()]
    assert found == list(range(100))


def test_empty_partitions_beside_a_full_one_are_fetched_no_more_often_than_the_wait_says() -> None:
    model = ModelCluster()
    model.create("t", partitions=2)
    write(model, 0, *[b"x" * 100] * 100)
    config = ConsumerConfig(partition_max_bytes=400, prefetch_bytes=2000, max_wait_ms=500)
    consumer = reading(model, {FIRST: BEGINNING, SECOND: BEGINNING}, config)
    model.clock.run_for(5000)
    before = len(fetches(model))
    model.clock.run_for(10_000)
    assert 18 <= len(fetches(model)) - before <= 20
    consumer.close()
    model.clock.run_for(1000)
    before = len(fetches(model))
    model.clock.run_for(10_000)
    assert len(fetches(model)) == before


def test_a_partition_that_is_tried_again_does_not_wait_for_records_in_the_others() -> None:
    model = ModelCluster()
    model.create("t", partitions=20)
    write(model, 7, b"a")
    model.refuse("Fetch", ErrorCode.UNKNOWN_LEADER_EPOCH)
    started_ms = model.clock.monotonic_ms()
    consumer = reading(model, {TopicPartition("t", index): BEGINNING for index in range(20)})
    assert take(model, consumer, 1) == [(7, 0, b"a")]
    assert model.clock.monotonic_ms() - started_ms < 500


def test_a_partition_whose_offset_does_not_exist_does_not_wait_for_records_in_the_others() -> None:
    model = ModelCluster()
    model.create("t", partitions=2)
    write(model, 0, b"a")
    started_ms = model.clock.monotonic_ms()
    consumer = reading(model, {FIRST: Start(offset=50), SECOND: BEGINNING}, ConsumerConfig(reset=BEGINNING))
    assert take(model, consumer, 1) == [(0, 0, b"a")]
    assert model.clock.monotonic_ms() - started_ms < 500


def test_for_a_caller_that_takes_records_as_soon_as_they_arrive_nothing_is_fetched_twice() -> None:
    model = ModelCluster()
    model.create("t", partitions=2)
    for partition in range(2):
        write(model, partition, b"a", b"b", b"c")
    consumer = Consumer(model.client(), ConsumerConfig(partition_max_bytes=1))
    pieces: list[Fetched] = []

    def read() -> Steps[None]:
        yield from consumer.assign({FIRST: BEGINNING, SECOND: BEGINNING})
        while any(offset < 3 for offset in consumer.positions.values()):
            yield consumer.arrival()
            pieces.extend(consumer.poll())

    model.run(read())
    assert all(list(piece.records()) for piece in pieces)
    assert len(pieces) == 6


def test_a_budget_smaller_than_a_batch_still_reads_batch_by_batch() -> None:
    model = ModelCluster()
    model.create("t")
    write(model, 0, *[b"x" * 100] * 5)
    consumer = reading(model, {FIRST: BEGINNING}, ConsumerConfig(partition_max_bytes=1, prefetch_bytes=1))
    assert len(take(model, consumer, 5)) == 5


@pytest.mark.parametrize(
    "config",
    [
        ConsumerConfig(min_bytes=5000, prefetch_bytes=1),
        ConsumerConfig(min_bytes=5000, max_bytes=100),
        ConsumerConfig(min_bytes=5000, partition_max_bytes=100),
    ],
    ids=["budget", "response", "partition"],
)
def test_a_fetch_that_has_room_for_less_than_the_minimum_does_not_wait_for_more(config: ConsumerConfig) -> None:
    model = ModelCluster()
    model.create("t", partitions=2)
    write(model, 0, *[b"x" * 100] * 5)
    consumer = reading(model, {FIRST: BEGINNING, SECOND: BEGINNING}, replace(config, max_wait_ms=500))
    started_ms = model.clock.monotonic_ms()
    assert len(take(model, consumer, 5)) == 5
    assert model.clock.monotonic_ms() - started_ms < 500


def test_fetched_records_survive_a_new_assignment() -> None:
    model = ModelCluster()
    model.create("t", partitions=2)
    write(model, 0, b"a", b"b")
    consumer = reading(model, {FIRST: BEGINNING})
    model.wait(consumer.arrival())
    model.run(consumer.assign({FIRST: Start(offset=0), TopicPartition("t", 1): BEGINNING}))
    assert [fetched.topic_partition for fetched in consumer.poll()] == [FIRST]
    model.run(consumer.assign({FIRST: Start(offset=1)}))
    assert take(model, consumer, 1) == [(0, 1, b"b")]


def test_a_session_sends_only_changes() -> None:
    model = ModelCluster()
    model.create("t", partitions=20)
    consumer = reading(model, {TopicPartition("t", index): BEGINNING for index in range(20)})
    write(model, 3, b"news")
    assert take(model, consumer, 1) == [(3, 0, b"news")]
    model.clock.run_for(2000)
    named = [sum(len(topic.partitions) for topic in request.topics) for request in fetches(model)]
    assert named[0] == 20
    assert sum(named[1:]) == 1
    assert len(model.fetch_sessions[1].sessions) == 1
    consumer.close()
    model.clock.run_for(2000)
    assert not model.fetch_sessions[1].sessions


def test_a_broker_that_loses_its_sessions_is_read_on() -> None:
    model = ModelCluster()
    model.create("t")
    consumer = reading(model, {FIRST: BEGINNING})
    for number in range(4):
        write(model, 0, b"%d" % number)
        assert take(model, consumer, 1) == [(0, number, b"%d" % number)]
        model.fetch_sessions[1].sessions.clear()


def test_a_full_partition_does_not_starve_the_others() -> None:
    model = ModelCluster()
    model.create("t", partitions=2)
    write(model, 0, *[b"x" * 100] * 50)
    write(model, 1, b"small")
    consumer = reading(
        model,
        {FIRST: BEGINNING, TopicPartition("t", 1): BEGINNING},
        ConsumerConfig(partition_max_bytes=300, max_bytes=300),
    )
    found = take(model, consumer, 4)
    assert (1, 0, b"small") in found


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
