"""A stream's reader called as Spark calls it, against a real Quire: where it starts, how far it reads, what it
commits.
"""

import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from pyspark_quire.columns import PLAIN
from pyspark_quire.errors import DataLossError, QuireError
from pyspark_quire.group_progress import group_id
from pyspark_quire.options import Options, Use
from pyspark_quire.reading import Split
from pyspark_quire.stream_reader import StreamReader
from quire.client.admin.group_lag import group_details
from quire.client.admin.topics import create_partitions, delete_records, delete_topics
from quire.client.group_offsets import fetch_offsets
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError
from tests.spark.conftest import MakeTopic
from tests.spark.filling import DAY_MS, append, open_transaction, record

ALL = ReadAllAvailable()
MakeReader = Callable[..., StreamReader]
Json = dict[str, Any]


@pytest.fixture
def make_reader(servers: str) -> Iterator[MakeReader]:
    """make_reader(**options) -> a reader in a process that has just started."""
    made: list[StreamReader] = []

    def make(**given: Any) -> StreamReader:
        options = {key.replace("_", "."): str(value) for key, value in given.items()}
        made.append(StreamReader(Options({"kafka.bootstrap.servers": servers} | options, Use.STREAM_READ), PLAIN))
        return made[-1]

    yield make
    for reader in made:
        reader.stop()


def offsets(state: Json) -> dict[str, dict[str, int]]:
    return {topic: part["offsets"] for topic, part in state.items()}


def ranges(reader: StreamReader, start: Json, end: Json) -> list[tuple[str, int, int]]:
    found = []
    for split in reader.partitions(_kept(start), _kept(end)):
        assert isinstance(split, Split)
        found += [(str(part.topic_partition), part.start, part.end) for part in split.parts]
    return found


def _kept(state: Json) -> Json:
    """The position as read from a checkpoint."""
    kept: Json = json.loads(json.dumps(state))
    return kept


def committed(client: BlockingClient, group: str) -> dict[int, tuple[int, str]]:
    found = client.run(fetch_offsets(client.cluster, group))
    return {topic_partition.partition: (at.offset, at.metadata) for topic_partition, at in found.items()}


def fill(client: BlockingClient, topic: str, count: int, partition: int = 0) -> None:
    append(client, topic, [record(b"x") for _ in range(count)], partition)


def test_a_new_stream_starts_at_the_end_by_default(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    topic = make_topic(partitions=2)
    fill(client, topic, 3)
    fill(client, topic, 4, 1)
    assert offsets(make_reader(subscribe=topic).initialOffset()) == {topic: {"0": 3, "1": 4}}
    early = make_reader(subscribe=topic, startingOffsets="earliest", kafka_group_id=f"{topic}-early")
    assert offsets(early.initialOffset()) == {topic: {"0": 0, "1": 0}}


def test_the_start_does_not_change_while_records_arrive(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    topic = make_topic()
    reader = make_reader(subscribe=topic)
    start = reader.initialOffset()
    fill(client, topic, 3)
    assert reader.initialOffset() == start
    assert offsets(reader.latestOffset(start, ALL)) == {topic: {"0": 3}}


def test_a_crash_before_the_first_batch_is_done_does_not_move_the_start(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    topic = make_topic()
    fill(client, topic, 5)
    start = make_reader(subscribe=topic).initialOffset()
    fill(client, topic, 2)
    again = make_reader(subscribe=topic)
    assert again.initialOffset() == start
    assert offsets(again.latestOffset(start, ALL)) == {topic: {"0": 7}}


def test_the_remembered_start_is_for_the_same_options_and_the_same_topic_only(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    topic = make_topic()
    fill(client, topic, 5)
    make_reader(subscribe=topic).initialOffset()
    fill(client, topic, 2)
    by_time = make_reader(subscribe=topic, startingTimestamp=DAY_MS)
    assert offsets(by_time.initialOffset()) == {topic: {"0": 0}}
    client.run(delete_topics(client.cluster, [topic]))
    make_topic(name=topic)
    fill(client, topic, 1)
    assert offsets(make_reader(subscribe=topic).initialOffset()) == {topic: {"0": 1}}


def test_after_the_first_batch_the_remembered_start_is_replaced(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    topic = make_topic()
    reader = make_reader(subscribe=topic, kafka_group_id=f"{topic}-group")
    start = reader.initialOffset()
    assert committed(client, f"{topic}-group")[0][0] == 0
    assert "initial" in committed(client, f"{topic}-group")[0][1]
    fill(client, topic, 3)
    end = reader.latestOffset(start, ALL)
    assert "initial" in committed(client, f"{topic}-group")[0][1]
    assert reader.latestOffset(end, ALL) == end
    assert committed(client, f"{topic}-group") == {0: (3, "")}


def test_a_first_batch_that_is_run_again_begins_where_it_began_also_when_another_stream_has_used_its_group(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    topic = make_topic()
    fill(client, topic, 5)
    crashed = make_reader(subscribe=topic)
    start = crashed.initialOffset()
    fill(client, topic, 3)
    end = crashed.latestOffset(start, ALL)
    planned = ranges(crashed, start, end)
    assert planned == [(f"{topic}-0", 5, 8)]
    other = make_reader(subscribe=topic, startingOffsets="earliest")
    other.latestOffset(other.latestOffset(other.initialOffset(), ALL), ALL)
    assert committed(client, group_id(Options({"subscribe": topic}, Use.STREAM_READ))) == {0: (8, "")}
    again = make_reader(subscribe=topic)
    assert ranges(again, again.initialOffset(), end) == planned
    fill(client, topic, 4)
    later = make_reader(subscribe=topic, kafka_group_id=f"{topic}-elsewhere")
    assert ranges(later, later.initialOffset(), end) == planned


def test_a_first_batch_with_nothing_in_it_ends_the_remembering_too(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    topic = make_topic()
    fill(client, topic, 5)
    reader = make_reader(subscribe=topic)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    assert offsets(end) == offsets(start)
    assert reader.latestOffset(end, ALL) == end
    fill(client, topic, 2)
    assert offsets(make_reader(subscribe=topic).initialOffset()) == {topic: {"0": 7}}


def test_the_group_shows_the_lag_of_what_is_not_done_yet(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    topic = make_topic()
    reader = make_reader(subscribe=topic, startingOffsets="earliest", groupIdPrefix="shown")
    fill(client, topic, 10)
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(4))
    reader.latestOffset(end, ReadMaxRows(4))
    detail = client.run(group_details(client.cluster, [f"shown-{topic}"]))[f"shown-{topic}"]
    assert not isinstance(detail, ApiError)
    (partition,) = detail.partitions
    assert (partition.committed and partition.committed.offset, partition.lag) == (4, 6)


def test_a_group_is_named_after_what_is_read() -> None:
    for given, name in (
        ({"subscribe": "b,a"}, "spark-quire-a-b"),
        ({"subscribePattern": "a.*"}, "spark-quire-a.*"),
        ({"assign": '{"a": [0, 1]}', "groupIdPrefix": "mine"}, "mine-a"),
        ({"subscribe": "a", "kafka.group.id": "g"}, "g"),
    ):
        assert group_id(Options(given, Use.STREAM_READ)) == name


def test_limits_are_kept(client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader) -> None:
    topic = make_topic(partitions=2)
    fill(client, topic, 30)
    fill(client, topic, 10, 1)
    reader = make_reader(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=20)
    assert reader.getDefaultReadLimit() == ReadMaxRows(20)
    start = reader.initialOffset()
    first = reader.latestOffset(start, ReadMaxRows(20))
    assert offsets(first) == {topic: {"0": 15, "1": 5}}
    assert ranges(reader, first, reader.latestOffset(first, ALL)) == [(f"{topic}-0", 15, 30), (f"{topic}-1", 5, 10)]
    assert offsets(reader.reportLatestOffset() or {}) == {topic: {"0": 30, "1": 10}}


def test_a_batch_waits_until_it_is_large_enough_or_the_delay_is_over(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    topic = make_topic()
    reader = make_reader(subscribe=topic, minOffsetsPerTrigger=5, maxTriggerDelay="1h")
    assert reader.getDefaultReadLimit() == ReadMinRows(5)
    start = reader.initialOffset()
    fill(client, topic, 4)
    waiting = reader.latestOffset(start, ReadMinRows(5))
    assert offsets(waiting) == {topic: {"0": 0}}
    assert reader.latestOffset(waiting, ReadMinRows(5)) == waiting
    fill(client, topic, 1)
    assert offsets(reader.latestOffset(waiting, ReadMinRows(5))) == {topic: {"0": 5}}
    impatient = make_reader(subscribe=topic, minOffsetsPerTrigger=50, maxTriggerDelay="0ms")
    assert offsets(impatient.latestOffset(start, ReadMinRows(50))) == {topic: {"0": 5}}


def test_a_stream_that_shall_end_by_itself_reads_what_was_there_and_no_more(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    topic = make_topic()
    fill(client, topic, 10)
    reader = make_reader(subscribe=topic, startingOffsets="earliest")
    reader.prepareForTriggerAvailableNow()
    fill(client, topic, 10)
    client.run(create_partitions(client.cluster, {topic: 2}))
    first = reader.latestOffset(reader.initialOffset(), ReadMaxRows(8))
    second = reader.latestOffset(first, ReadMaxRows(8))
    assert offsets(second)[topic]["0"] == 10
    assert reader.latestOffset(second, ReadMaxRows(8)) == second


def test_a_partition_that_is_added_is_read_from_its_beginning(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    topic = make_topic()
    reader = make_reader(subscribe=topic)
    fill(client, topic, 5)
    start = reader.initialOffset()
    client.run(create_partitions(client.cluster, {topic: 2}))
    fill(client, topic, 3, 1)
    end = reader.latestOffset(start, ALL)
    assert ranges(reader, start, end) == [(f"{topic}-1", 0, 3)]
    after = reader.latestOffset(_kept(end), ALL)
    assert after == end, "nothing new, so the very same state comes back"


def test_a_topic_that_is_added_is_found_by_its_pattern(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    first = make_topic()
    reader = make_reader(subscribePattern=f"{first}.*")
    start = reader.initialOffset()
    second = make_topic(name=f"{first}-more")
    fill(client, second, 2)
    assert ranges(reader, start, reader.latestOffset(start, ALL)) == [(f"{second}-0", 0, 2)]


def test_retention_that_overtook_a_stopped_stream_is_an_error_or_counted(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader, caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic()
    fill(client, topic, 10)
    first = make_reader(subscribe=topic, startingOffsets="earliest")
    start = first.latestOffset(first.initialOffset(), ReadMaxRows(3))
    client.run(delete_records(client.cluster, {TopicPartition(topic, 0): 7}))
    with pytest.raises(DataLossError, match=f"{topic}-0: offsets 3 to 6 are gone, the partition begins at 7 now"):
        make_reader(subscribe=topic).latestOffset(start, ALL)
    forgiving = make_reader(subscribe=topic, failOnDataLoss="false")
    assert ranges(forgiving, start, forgiving.latestOffset(start, ALL)) == [(f"{topic}-0", 7, 10)]
    assert "4 offsets skipped, 4 in all so far" in caplog.text


def test_a_restarted_read_committed_stream_loses_and_repeats_nothing_while_a_transaction_is_open(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    topic = make_topic()
    fill(client, topic, 2)
    producer = open_transaction(client, topic)
    everything = make_reader(subscribe=topic, startingOffsets="earliest")
    start = everything.latestOffset(everything.initialOffset(), ALL)
    assert offsets(start) == {topic: {"0": 3}}
    for fail in ("true", "false"):
        reader = make_reader(subscribe=topic, kafka_isolation_level="read_committed", failOnDataLoss=fail)
        assert reader.latestOffset(start, ALL) == start
    client.run(producer.commit())
    assert offsets(reader.latestOffset(start, ALL)) == {topic: {"0": 4}}


def test_a_topic_recreated_while_the_stream_was_stopped_is_an_error_or_read_from_its_beginning(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    topic = make_topic()
    fill(client, topic, 10)
    start = make_reader(subscribe=topic).initialOffset()
    client.run(delete_topics(client.cluster, [topic]))
    make_topic(name=topic)
    fill(client, topic, 12)
    with pytest.raises(DataLossError, match=f"topic {topic} was deleted and created again"):
        make_reader(subscribe=topic).latestOffset(start, ALL)
    forgiving = make_reader(subscribe=topic, failOnDataLoss="false")
    assert ranges(forgiving, start, forgiving.latestOffset(start, ALL)) == [(f"{topic}-0", 0, 12)]


def test_a_topic_deleted_while_the_stream_ran_is_an_error_or_left_out(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    kept, gone = make_topic(), make_topic()
    fill(client, kept, 1)
    given = {"subscribe": f"{kept},{gone}", "startingOffsets": "earliest"}
    start = make_reader(**given).initialOffset()
    client.run(delete_topics(client.cluster, [gone]))
    with pytest.raises(DataLossError, match=f"{gone}-0 no longer exists"):
        make_reader(**given).latestOffset(start, ALL)
    forgiving = make_reader(**given, failOnDataLoss="false")
    first = forgiving.latestOffset(start, ALL)
    assert ranges(forgiving, start, first) == [(f"{kept}-0", 0, 1)]
    fill(client, kept, 2)
    second = forgiving.latestOffset(first, ALL)
    assert ranges(forgiving, first, second) == [(f"{kept}-0", 1, 3)]
    strict = make_reader(**given)
    assert strict.latestOffset(second, ALL) == second, "it was let pass before"
    fewer = make_reader(**given | {"subscribe": kept})
    assert fewer.latestOffset(second, ALL) == second
    make_topic(name=gone)
    fill(client, gone, 4)
    assert ranges(strict, second, strict.latestOffset(second, ALL)) == [(f"{gone}-0", 0, 4)]


def test_the_checkpoint_of_another_stream_is_refused(make_topic: MakeTopic, make_reader: MakeReader) -> None:
    mine, other = make_topic(), make_topic()
    state = make_reader(subscribe=other).initialOffset()
    for fail in ("true", "false"):
        reader = make_reader(subscribe=mine, failOnDataLoss=fail)
        sentence = f"the checkpoint has offsets of {other}, which this stream does not read \\(subscribe {mine}\\)"
        with pytest.raises(QuireError, match=sentence):
            reader.latestOffset(state, ALL)
        with pytest.raises(QuireError, match=sentence):
            reader.partitions(state, state)


def test_a_repeated_batch_is_split_as_before_through_any_later_changes(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    topic = make_topic()
    fill(client, topic, 10)
    first = make_reader(subscribe=topic, startingOffsets="earliest", minPartitions=3)
    start = first.initialOffset()
    end = first.latestOffset(start, ALL)
    planned = ranges(first, start, end)
    fill(client, topic, 50)
    client.run(create_partitions(client.cluster, {topic: 3}))
    assert ranges(make_reader(subscribe=topic, minPartitions=3), start, end) == planned
    assert len(planned) == 3


def test_a_reader_leaves_its_client_behind_when_it_is_pickled(make_topic: MakeTopic, make_reader: MakeReader) -> None:
    reader = make_reader(subscribe=make_topic())
    start = reader.initialOffset()
    copy = pickle.loads(pickle.dumps(reader))
    assert offsets(copy.latestOffset(start, ALL)) == offsets(start)
    copy.stop()


def test_a_stream_of_a_topic_that_does_not_exist_starts_only_by_its_pattern(
    client: BlockingClient, make_topic: MakeTopic, make_reader: MakeReader
) -> None:
    with pytest.raises(QuireError, match=r"^topic not-yet does not exist; .*subscribePattern$"):
        make_reader(subscribe="not-yet").initialOffset()
    reader = make_reader(subscribePattern="not-yet")
    start = reader.initialOffset()
    assert offsets(start) == {}
    make_topic(name="not-yet")
    fill(client, "not-yet", 3)
    assert offsets(reader.latestOffset(start, ALL)) == {"not-yet": {"0": 3}}
