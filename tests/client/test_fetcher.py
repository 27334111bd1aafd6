"""Fetching ahead of the caller: how far, from which partitions, and with which waits; against a model of a cluster."""

from dataclasses import replace

import pytest

from quire.client.consumer import BEGINNING, Consumer, ConsumerConfig, Start
from quire.client.fetched import Fetched
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchRequest
from quire.steps import Steps
from tests.client.model_cluster import ModelCluster
from tests.client.model_topic import FIRST, reading, take, write

SECOND = TopicPartition("t", 1)


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
