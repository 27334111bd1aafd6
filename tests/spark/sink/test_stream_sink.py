"""A stream's rows are in the sink once when batches run again and tasks fail, or the query fails loudly: with Spark.

test_sink_tasks tests single tasks, and test_exactly_once the interleaving of tasks, both without Spark.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from quire.client.shell_blocking import BlockingClient
from tests.spark.conftest import MakeTopic
from tests.spark.sink.copying import copy, failing_while, fill, forget_last_commit, numbers, read_numbers
from tests.spark.sink.log_reader import values


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(Exception) as failed:
        act()
    return str(failed.value)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def test_batches_are_copied_once_and_one_that_runs_again_is_not_written_again(
    spark: SparkSession, servers: str, client: BlockingClient, make_topic: MakeTopic, checkpoint: Path
) -> None:
    source, sink = make_topic(partitions=2), make_topic(partitions=3)
    fill(client, source, 0, 100, 2)
    frame = read_numbers(spark, servers, source, maxOffsetsPerTrigger=40, minPartitions=2)
    copy(frame, servers, sink, checkpoint)
    assert values(servers, sink) == numbers(0, 100)
    forget_last_commit(checkpoint)
    fill(client, source, 100, 110, 2)
    copy(frame, servers, sink, checkpoint)
    assert values(servers, sink) == numbers(0, 110)
    assert values(servers, sink, committed=False) == numbers(0, 110), "skipped, not written and aborted"


def test_a_stream_that_begins_with_nothing_to_write_continues_when_rows_arrive(
    spark: SparkSession, servers: str, client: BlockingClient, make_topic: MakeTopic, checkpoint: Path
) -> None:
    source, sink = make_topic(), make_topic()
    frame = read_numbers(spark, servers, source)
    copy(frame, servers, sink, checkpoint)
    fill(client, source, 0, 10)
    copy(frame, servers, sink, checkpoint)
    fill(client, source, 10, 20)
    copy(frame, servers, sink, checkpoint)
    assert values(servers, sink) == numbers(0, 20)


def test_a_batch_that_runs_again_with_another_split_fails(
    spark: SparkSession, servers: str, client: BlockingClient, make_topic: MakeTopic, checkpoint: Path
) -> None:
    source, sink = make_topic(), make_topic()
    fill(client, source, 0, 20)
    frame = read_numbers(spark, servers, source)
    copy(frame.repartition(2, "value"), servers, sink, checkpoint)
    forget_last_commit(checkpoint)
    said = refusal(lambda: copy(frame.repartition(3, "value"), servers, sink, checkpoint))
    assert "was already written with other rows" in said or "was finished before by 2 tasks" in said
    said = refusal(lambda: copy(frame.coalesce(1), servers, sink, checkpoint))
    assert "task 0 of batch 0 of sink" in said
    assert "20 with" in said
    copy(frame.repartition(2, "value"), servers, sink, checkpoint)
    assert values(servers, sink) == numbers(0, 20)


def test_the_retry_after_a_failed_task_finds_the_writes_of_the_others(
    spark: SparkSession, servers: str, client: BlockingClient, make_topic: MakeTopic, checkpoint: Path, tmp_path: Path
) -> None:
    source, sink = make_topic(partitions=3), make_topic(partitions=2)
    fill(client, source, 0, 60, 3)
    flag = tmp_path / "fail"
    flag.touch()
    frame = read_numbers(spark, servers, source, minPartitions=3).select("key", failing_while(flag, "59"))
    said = refusal(lambda: copy(frame, servers, sink, checkpoint))
    assert "failing at 59 on purpose" in said
    written = values(servers, sink)
    assert "59" not in written, "a task that fails leaves nothing"
    flag.unlink()
    copy(frame, servers, sink, checkpoint)
    assert values(servers, sink) == numbers(0, 60)


def test_a_batch_in_foreach_batch_is_written_once_to_each_of_its_sinks(
    spark: SparkSession, servers: str, client: BlockingClient, make_topic: MakeTopic, checkpoint: Path, tmp_path: Path
) -> None:
    source, first, second = make_topic(), make_topic(), make_topic()
    fill(client, source, 0, 10)
    flag = tmp_path / "fail"
    flag.touch()

    def write(batch: DataFrame, _: int) -> None:
        def save(frame: DataFrame, topic: str, **options: str) -> None:
            writer = frame.write.format("quire").mode("append").option("kafka.bootstrap.servers", servers)
            writer.options(topic=topic, **options).save()

        save(batch, first)
        if os.path.exists(flag):
            raise RuntimeError("between the sinks")
        save(batch, second)
        save(batch.select(f.concat(f.lit("again "), "value").alias("value")), second, sink="again")

    def run() -> None:
        query = read_numbers(spark, servers, source).writeStream.foreachBatch(write)
        query.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()

    assert "between the sinks" in refusal(run)
    flag.unlink()
    run()
    forget_last_commit(checkpoint)
    run()
    assert values(servers, first) == numbers(0, 10)
    assert values(servers, second) == sorted([*numbers(0, 10), *(f"again {number}" for number in range(10))])


def test_a_wrong_option_of_a_stream_is_reported_before_it_runs(
    spark: SparkSession, servers: str, checkpoint: Path
) -> None:
    frame = spark.readStream.format("rate").load().selectExpr("cast(value as string) as value")
    said = refusal(lambda: copy(frame, servers, "t", checkpoint, exactlyonse="true"))
    assert "there is no option exactlyonse; did you mean exactlyOnce?" in said
