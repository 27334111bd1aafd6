"""Batch reads through a real Spark from a real Quire: rows, columns, and what is refused."""

import json

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import count, count_distinct
from pyspark.sql.functions import max as highest

from pyspark_quire.columns import PLAIN, WITH_HEADERS
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


def test_columns_are_those_of_sparks_own_source_with_headers_when_asked_for(
    spark: SparkSession, servers: str, client: BlockingClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    append(client, topic, [record(b"v", headers=[("h", b"1")]), record(b"w")])
    assert read(spark, servers, subscribe=topic).schema == PLAIN
    frame = read(spark, servers, subscribe=topic, includeHeaders="true").orderBy("offset")
    assert frame.schema == WITH_HEADERS
    with_headers, without = frame.collect()
    assert [(header.key, header.value) for header in with_headers.headers] == [("h", b"1")]
    assert without.headers is None


def test_splits_of_a_partition_are_read_by_several_tasks_with_every_row_once(
    spark: SparkSession, servers: str, client: BlockingClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    append(client, topic, [record(b"%d" % index) for index in range(1000)])
    frame = read(spark, servers, subscribe=topic, minPartitions=4)
    assert frame.rdd.getNumPartitions() == 4
    assert frame.select(count("value"), count_distinct("offset"), highest("offset")).first() == (1000, 1000, 999)


def test_a_read_that_stops_early_leaves_the_next_one_alone(
    spark: SparkSession, servers: str, client: BlockingClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(max_message_bytes="20000000")
    for _ in range(4):
        append(client, topic, [record(bytes(1000)) for _ in range(10_000)])
    frame = read(spark, servers, subscribe=topic)
    assert [row.offset for row in frame.limit(3).collect()] == [0, 1, 2]
    assert frame.select("offset").distinct().count() == 40_000


def test_a_topic_without_records_gives_a_frame_without_rows(
    spark: SparkSession, servers: str, make_topic: MakeTopic
) -> None:
    assert read(spark, servers, subscribe=make_topic(partitions=2)).count() == 0


def test_an_error_reaches_the_user_as_one_sentence(spark: SparkSession, servers: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with pytest.raises(PySparkException, match=r"there is no option startingofset; did you mean startingOffsets\?"):
        read(spark, servers, subscribe=topic, startingOfset="earliest")
    with pytest.raises(PySparkException, match="topic no-such-topic does not exist"):
        read(spark, servers, subscribe="no-such-topic").count()
    with pytest.raises(PySparkException, match=r"127\.0\.0\.1:1"):
        read(spark, "127.0.0.1:1", subscribe=topic).count()
    with pytest.raises(PySparkException, match="would be read from offset 5 to 0"):
        read(spark, servers, subscribe=topic, startingOffsets=json.dumps({topic: {"0": 5}})).count()
