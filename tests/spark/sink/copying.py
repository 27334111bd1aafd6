"""The stream of the sink's tests: it copies one topic to another once, with options that make it fail."""

from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from quire.client.shell_blocking import BlockingClient
from tests.spark.filling import append, read_stream, record


def fill(client: BlockingClient, topic: str, start: int, stop: int, partitions: int = 1) -> None:
    """The numbers as values, in turn to each partition."""
    now_ms = client.loop.now_ms()
    for partition in range(partitions):
        texts = [str(number).encode() for number in range(start + partition, stop, partitions)]
        append(client, topic, [record(text, text, now_ms) for text in texts], partition)


def numbers(start: int, stop: int) -> list[str]:
    return sorted(map(str, range(start, stop)))


def read_numbers(spark: SparkSession, servers: str, topic: str, **options: Any) -> DataFrame:
    frame = read_stream(spark, servers, subscribe=topic, startingOffsets="earliest", **options)
    return frame.select(f.col("key").cast("string"), f.col("value").cast("string"))


def start_copy(frame: DataFrame, servers: str, topic: str, checkpoint: Path, **options: Any) -> StreamingQuery:
    """Copies the existing records in batches, and ends; `_` in an option's name stands for a dot."""
    writer = frame.writeStream.format("quire").option("kafka.bootstrap.servers", servers).option("topic", topic)
    for name, value in options.items():
        writer = writer.option(name.replace("_", "."), value)
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def copy(frame: DataFrame, servers: str, topic: str, checkpoint: Path, **options: Any) -> None:
    start_copy(frame, servers, topic, checkpoint, **options).awaitTermination()


def lake_in(folder: Path) -> str:
    """The path of the Delta table of the copying job."""
    return str(folder / "lake")


def failing_while(flag: Path, value: str) -> Column:
    """The value column, which raises at one value as long as a file exists."""
    path = str(flag)

    def check(text: str) -> str:
        import os

        if text == value and os.path.exists(path):
            raise RuntimeError(f"failing at {text} on purpose")
        return text

    return f.udf(check, "string")(f.col("value")).alias("value")


def forget_last_commit(checkpoint: Path) -> None:
    """The state after Spark died between the sink's commit and its own record of it: the batch runs again."""
    commits = [path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()]
    last = max(commits, key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
