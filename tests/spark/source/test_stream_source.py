"""Streams through a real Spark from a real Quire: where they start, what they read next, what they do about loss."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from quire.client.shell_blocking import BlockingClient
from tests.spark.conftest import MakeTopic
from tests.spark.filling import append, read_stream, record

Run = Callable[[DataFrame], list[tuple[Any, ...]]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """run(frame) -> the new rows up to the end there is now, by a query with one checkpoint for the whole test."""

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


def test_a_stream_goes_on_where_its_checkpoint_ends(
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
