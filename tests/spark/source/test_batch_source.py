"""Batch reads through a real Spark from a real Quire: rows, columns, and what is refused."""

from pyspark.sql import SparkSession

from quire.client.shell_blocking import BlockingClient
from tests.spark.conftest import MakeTopic
from tests.spark.filling import DAY_MS, append, read, record


def test_spark_finds_the_source_by_itself_and_reads_every_row_of_a_topic(
    spark: SparkSession, servers: str, client: BlockingClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    append(client, topic, [record(b"a", b"k"), record(b"b")])
    append(client, topic, [record(None, b"gone")], partition=1)
    rows = read(spark, servers, subscribe=topic).orderBy("partition", "offset").collect()
    assert [
        (row.key, row.value, row.topic, row.partition, row.offset, row.timestamp.timestamp(), row.timestampType)
        for row in rows
    ] == [
        (b"k", b"a", topic, 0, 0, DAY_MS / 1000, 0),
        (None, b"b", topic, 0, 1, DAY_MS / 1000, 0),
        (b"gone", None, topic, 1, 0, DAY_MS / 1000, 0),
    ]
