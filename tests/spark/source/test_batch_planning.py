"""The plan of a batch read: from the options and a real Quire to ranges of offsets, without Spark."""

import json
import re
from typing import Any

import pytest

from pyspark_quire.batch_reader import BatchReader, plan_batch
from pyspark_quire.columns import PLAIN
from pyspark_quire.errors import DataLossError, OptionError, QuireError
from pyspark_quire.options import Options, Use
from quire.client.admin.topics import delete_records
from quire.client.errors import UnreachableError
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from tests.spark.conftest import MakeTopic
from tests.spark.filling import DAY_MS, append, open_transaction, record


def plan(client: BlockingClient, **given: Any) -> dict[int, tuple[int, int]]:
    """(start, end) by partition."""
    found = client.run(plan_batch(client.cluster, Options({key: str(given[key]) for key in given}, Use.BATCH_READ)))
    return {part.topic_partition.partition: (part.start, part.end) for part in found}


@pytest.fixture(scope="module")
def topic(client: BlockingClient, make_topic: MakeTopic) -> str:
    """Two partitions with five and three records, a second apart from DAY_MS on."""
    name = make_topic(partitions=2)
    for partition, count in ((0, 5), (1, 3)):
        append(client, name, [record(b"x", timestamp=DAY_MS + 1000 * index) for index in range(count)], partition)
    return name


def by_partition(topic: str, *numbers: int) -> str:
    return json.dumps({topic: {str(index): number for index, number in enumerate(numbers)}})


def test_everything_is_read_unless_the_options_say_otherwise(client: BlockingClient, topic: str) -> None:
    assert plan(client, subscribe=topic) == {0: (0, 5), 1: (0, 3)}


def test_an_empty_topic_gives_nothing(client: BlockingClient, make_topic: MakeTopic) -> None:
    assert plan(client, subscribe=make_topic(partitions=2)) == {0: (0, 0), 1: (0, 0)}


def test_offsets_are_taken_as_given_and_the_words_for_both_ends_by_their_numbers(
    client: BlockingClient, topic: str
) -> None:
    assert plan(
        client, subscribe=topic, startingOffsets=by_partition(topic, 2, -2), endingOffsets=by_partition(topic, 4, -1)
    ) == {0: (2, 4), 1: (0, 3)}


def test_a_timestamp_means_the_first_record_that_is_not_older(client: BlockingClient, topic: str) -> None:
    assert plan(
        client,
        subscribe=topic,
        startingOffsetsByTimestamp=by_partition(topic, DAY_MS + 1500, DAY_MS),
        endingTimestamp=DAY_MS + 2000,
    ) == {0: (2, 2), 1: (0, 2)}


def test_one_timestamp_for_all_counts_before_one_for_each_and_that_before_offsets(
    client: BlockingClient, topic: str
) -> None:
    found = plan(
        client,
        subscribe=topic,
        startingOffsets="earliest",
        startingOffsetsByTimestamp=by_partition(topic, 0, 0),
        startingTimestamp=DAY_MS + 1000,
    )
    assert found == {0: (1, 5), 1: (1, 3)}


def test_a_start_that_is_later_than_every_record_is_an_error_unless_the_strategy_says_latest(
    client: BlockingClient, topic: str
) -> None:
    with pytest.raises(QuireError, match=f"{topic}-1 has no record at or after timestamp {DAY_MS + 3000}"):
        plan(client, subscribe=topic, startingTimestamp=DAY_MS + 3000)
    found = plan(client, subscribe=topic, startingTimestamp=DAY_MS + 3000, startingOffsetsByTimestampStrategy="latest")
    assert found == {0: (3, 5), 1: (3, 3)}


def test_an_end_that_is_later_than_every_record_is_the_end(client: BlockingClient, topic: str) -> None:
    assert plan(client, subscribe=topic, endingTimestamp=DAY_MS * 2) == {0: (0, 5), 1: (0, 3)}


def test_partitions_can_be_chosen(client: BlockingClient, topic: str) -> None:
    assert plan(client, assign=json.dumps({topic: [1]})) == {1: (0, 3)}
    with pytest.raises(QuireError, match=f"^topic {topic} has no partition 7; its partitions are numbered 0 to 1$"):
        plan(client, assign=json.dumps({topic: [1, 7]}))


def test_topics_are_chosen_by_a_pattern_for_their_whole_name(client: BlockingClient, make_topic: MakeTopic) -> None:
    for name in ("pattern-a", "pattern-b", "other-pattern-a"):
        make_topic(name=name)
    options = Options({"subscribePattern": "pattern-.*"}, Use.BATCH_READ)
    found = client.run(plan_batch(client.cluster, options))
    assert [part.topic_partition.topic for part in found] == ["pattern-a", "pattern-b"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "no topic is selected; give one of the options subscribe, subscribePattern, assign"),
        ({"subscribe": "a", "assign": '{"a": [0]}'}, "subscribe and assign both select what to read"),
        ({"subscribe": "a", "startingOffsets": "latest"}, "startingOffsets cannot be latest for a batch"),
        ({"subscribe": "a", "startingOffsets": '{"a": {"0": -1}}'}, "startingOffsets cannot be latest for a batch"),
        ({"subscribe": "a", "endingOffsets": "earliest"}, "endingOffsets cannot be earliest for a batch"),
    ],
)
def test_options_that_contradict_each_other_are_refused(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(OptionError, match=re.escape(sentence)):
        BatchReader(Options(given, Use.BATCH_READ), PLAIN)


@pytest.mark.parametrize(
    ("offsets", "sentence"),
    [
        ((2,), "option startingOffsets has no entry for TOPIC-1"),
        ((2, 0, 0), "option startingOffsets names TOPIC-2, which this job does not read"),
    ],
)
def test_offsets_must_be_for_the_partitions_that_are_read(
    client: BlockingClient, topic: str, offsets: tuple[int, ...], sentence: str
) -> None:
    with pytest.raises(OptionError, match=sentence.replace("TOPIC", topic)):
        plan(client, subscribe=topic, startingOffsets=by_partition(topic, *offsets))


def test_a_start_behind_the_end_is_refused(client: BlockingClient, topic: str) -> None:
    with pytest.raises(QuireError, match=f"{topic}-0 would be read from offset 4 to 2"):
        plan(
            client, subscribe=topic, startingOffsets=by_partition(topic, 4, 0), endingOffsets=by_partition(topic, 2, 3)
        )


def test_an_end_that_does_not_exist_is_refused_or_cut(client: BlockingClient, topic: str) -> None:
    ends = by_partition(topic, 99, 3)
    with pytest.raises(DataLossError, match=f"{topic}-0: offset 99 is not there, the partition ends at 5"):
        plan(client, subscribe=topic, endingOffsets=ends)
    assert plan(client, subscribe=topic, endingOffsets=ends, failOnDataLoss="false") == {0: (0, 5), 1: (0, 3)}


def test_an_end_behind_an_open_transaction_is_not_taken_for_lost_records(
    client: BlockingClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    append(client, topic, [record(b"x")] * 2)
    producer = open_transaction(client, topic, records=3)
    committed: dict[str, Any] = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    assert plan(client, **committed) == {0: (0, 2)}
    sentence = f"^{topic}-0: offset 4 cannot be read yet .* open from offset 2 on .*quire transactions list"
    for beyond in ({"endingOffsets": by_partition(topic, 4)}, {"startingOffsets": by_partition(topic, 4)}):
        with pytest.raises(DataLossError, match=sentence):
            plan(client, **committed, **beyond)
    assert plan(client, **committed, endingOffsets=by_partition(topic, 4), failOnDataLoss="false") == {0: (0, 2)}
    with pytest.raises(QuireError, match="the start is after the end"):
        plan(client, **committed, startingOffsets=by_partition(topic, 4), endingOffsets=by_partition(topic, 1))
    assert plan(client, subscribe=topic, endingOffsets=by_partition(topic, 4)) == {0: (0, 4)}
    client.run(producer.commit())
    assert plan(client, **committed, endingOffsets=by_partition(topic, 4)) == {0: (0, 4)}


def test_a_deleted_start_offset_is_refused_or_moved(client: BlockingClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    append(client, topic, [record(b"x")] * 5)
    client.run(delete_records(client.cluster, {TopicPartition(topic, 0): 3}))
    starts = by_partition(topic, 1)
    with pytest.raises(DataLossError, match=f"{topic}-0: offsets 1 to 2 are gone, the partition begins at 3 now"):
        plan(client, subscribe=topic, startingOffsets=starts)
    assert plan(client, subscribe=topic, startingOffsets=starts, failOnDataLoss="false") == {0: (3, 5)}
    assert plan(client, subscribe=topic) == {0: (3, 5)}


def test_a_topic_that_does_not_exist_is_named(client: BlockingClient) -> None:
    with pytest.raises(QuireError, match=r"^topic no-such-topic does not exist; create it"):
        plan(client, subscribe="no-such-topic")
    with pytest.raises(QuireError, match=r"^no topic matches subscribePattern no-such-.*$"):
        plan(client, subscribePattern="no-such-.*")


def test_an_unreachable_cluster_is_reported_at_once_with_its_address() -> None:
    options = Options({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}, Use.BATCH_READ)
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1"):
        BatchReader(options, PLAIN).partitions()
