"""Streams through a real Spark from a real Quire: where they start, what they read next, how they handle loss."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from quire.client.admin.topics import delete_records
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from tests.spark.conftest import ROOT, MakeTopic
from tests.spark.filling import append, read_stream, record

Run = Callable[[DataFrame], list[tuple[Any, ...]]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """run(frame) -> the new rows up to the current end, read by a query with one checkpoint for the whole test."""

    def run(frame: DataFrame) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []

        def collect(batch: DataFrame, number: int) -> None:
            rows.extend((row.partition, row.offset, row.value) for row in batch.collect())

        query = (
            frame.writeStream.foreachBatch(collect)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sorted(rows)

    return run


def test_a_stream_continues_where_its_checkpoint_ends(
    spark: SparkSession, servers: str, client: BlockingClient, make_topic: MakeTopic, run: Run
) -> None:
    topic = make_topic(partitions=2)
    append(client, topic, [record(b"a"), record(b"b")])
    frame = read_stream(spark, servers, subscribe=topic, startingOffsets="earliest")
    assert run(frame) == [(0, 0, b"a"), (0, 1, b"b")]
    assert run(frame) == []
    append(client, topic, [record(b"c")])
    append(client, topic, [record(b"d")], partition=1)
    assert run(frame) == [(0, 2, b"c"), (1, 0, b"d")]


def test_limits_divide_the_backlog_into_several_batches(
    spark: SparkSession, servers: str, client: BlockingClient, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(partitions=2)
    for partition in range(2):
        append(client, topic, [record(b"%d" % index) for index in range(10)], partition)
    frame = read_stream(spark, servers, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=8)
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    counts = [progress["numInputRows"] for progress in query.recentProgress]
    assert [count for count in counts if count] == [8, 8, 4]
    last = json.loads(query.recentProgress[-1]["sources"][0]["endOffset"])
    assert last[topic]["offsets"] == {"0": 10, "1": 10}


def test_lost_records_end_the_query_with_one_sentence(
    spark: SparkSession, servers: str, client: BlockingClient, make_topic: MakeTopic, run: Run
) -> None:
    topic = make_topic()
    append(client, topic, [record(b"a"), record(b"b")])
    frame = read_stream(spark, servers, subscribe=topic, startingOffsets="earliest")
    assert len(run(frame)) == 2
    append(client, topic, [record(b"c"), record(b"d")])
    client.run(delete_records(client.cluster, {TopicPartition(topic, 0): 3}))
    with pytest.raises(StreamingQueryException, match=f"{topic}-0: offsets 2 to 2 are gone"):
        run(frame)
    forgiving = read_stream(spark, servers, subscribe=topic, failOnDataLoss="false")
    assert run(forgiving) == [(0, 3, b"d")]


def test_the_example_of_the_documentation_runs(
    spark: SparkSession, servers: str, client: BlockingClient, make_topic: MakeTopic, tmp_path: Path
) -> None:
    make_topic(name="orders")
    append(client, "orders", [record(b"a book", b"anna")])
    page = (ROOT / "docs" / "pipelines.md").read_text()
    code = page.partition("## Reading")[2].partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec(code.replace("127.0.0.1:9092", servers).replace("/tmp/orders-checkpoint", str(tmp_path)), names)
    assert sum(progress["numInputRows"] for progress in names["query"].recentProgress) == 1
