"""A batch job writes its rows to the log, or fails with one sentence."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from quire.client.partitioner import partition_for_key
from quire.testing import Cluster
from tests.spark.conftest import MakeTopic
from tests.spark.sink.log_reader import messages, values

Write = Callable[..., None]


@pytest.fixture
def write(servers: str) -> Write:
    """write(df, topic=..., ...): `_` in an option's name stands for a dot."""

    def save(frame: DataFrame, mode: str = "append", **options: Any) -> None:
        writer = frame.write.format("quire").mode(mode).option("kafka.bootstrap.servers", servers)
        for name, value in options.items():
            writer = writer.option(name.replace("_", "."), value)
        writer.save()

    return save


def refusal(act: Callable[[], None]) -> str:
    """The message of Spark's exception: Quire's sentence, without a traceback."""
    with pytest.raises(Exception) as failed:
        act()
    said = str(failed.value)
    assert "Traceback" not in said
    return said


def test_keys_values_headers_and_nulls_arrive_as_they_are(
    spark: SparkSession, servers: str, write: Write, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    rows = spark.createDataFrame(
        [
            (1, "a", b"1", [("h", b"x")]),
            (2, None, b"", []),
            (3, "", None, None),
            (4, "d", b"4", [("", None), ("h", b"")]),
        ],
        "n int, key string, value binary, headers array<struct<key: string, value: binary>>",
    )
    write(rows.coalesce(1).orderBy("n").drop("n"), topic=topic)
    assert [(message.key(), message.value(), message.headers()) for message in messages(servers, topic)] == [
        (b"a", b"1", [("h", b"x")]),
        (None, b"", None),
        (b"", None, None),
        (b"d", b"4", [("", None), ("h", b"")]),
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_read_back_and_keys_are_where_kafka_puts_them(
    spark: SparkSession, servers: str, write: Write, make_topic: MakeTopic, codec: str
) -> None:
    topic = make_topic(partitions=5)
    rows = spark.range(2000).selectExpr("concat('key-', id) as key", "repeat(cast(id as string), 20) as value")
    write(rows, topic=topic, kafka_compression_type=codec, kafka_batch_size=8192)
    found = messages(servers, topic)
    assert {(message.key(), message.value()) for message in found} == {
        (f"key-{number}".encode(), str(number).encode() * 20) for number in range(2000)
    }
    assert len(found) == 2000
    assert all(message.partition() == partition_for_key(message.key(), 5) for message in found)


def test_a_partition_column_wins_over_the_key_and_a_topic_column_sorts_rows(
    spark: SparkSession, servers: str, write: Write, make_topic: MakeTopic
) -> None:
    first, second = make_topic(partitions=3), make_topic(partitions=3)
    rows = spark.range(9).select(
        f.lit("same").alias("key"),
        f.col("id").cast("string").alias("value"),
        f.when(f.col("id") < 6, f.col("id") % 3).cast("int").alias("partition"),
        f.when(f.col("id") < 3, first).otherwise(second).alias("topic"),
    )
    write(rows)
    same = partition_for_key(b"same", 3)
    assert [(m.partition(), m.value()) for m in messages(servers, first)] == [(0, b"0"), (1, b"1"), (2, b"2")]
    assert sorted((m.partition(), m.value()) for m in messages(servers, second)) == sorted(
        [(0, b"3"), (1, b"4"), (2, b"5"), (same, b"6"), (same, b"7"), (same, b"8")]
    )


def test_rows_without_keys_are_spread_batch_by_batch(
    spark: SparkSession, servers: str, write: Write, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=3)
    write(spark.range(600).selectExpr("repeat('x', 100) as value").coalesce(1), topic=topic, kafka_batch_size=4096)
    counts = [[m.partition() for m in messages(servers, topic)].count(partition) for partition in range(3)]
    assert sum(counts) == 600
    assert min(counts) > 100


def test_rows_that_were_read_can_be_written_unchanged(
    spark: SparkSession, servers: str, write: Write, make_topic: MakeTopic
) -> None:
    topic, copy = make_topic(partitions=2), make_topic(partitions=2)
    write(spark.range(50).selectExpr("cast(id as string) as key", "cast(id * 2 as string) as value"), topic=topic)
    frame = spark.read.format("quire").option("kafka.bootstrap.servers", servers).option("subscribe", topic).load()
    write(frame, topic=copy)
    assert [(m.partition(), m.key(), m.value()) for m in messages(servers, copy)] == [
        (m.partition(), m.key(), m.value()) for m in messages(servers, topic)
    ]


def test_records_of_ten_megabytes_go_through_where_the_topic_takes_them(
    spark: SparkSession, servers: str, write: Write, make_topic: MakeTopic
) -> None:
    topic = make_topic(max_message_bytes=str(12 * 1024 * 1024))
    write(spark.range(3).selectExpr("repeat('x', 10 * 1024 * 1024) as value"), topic=topic)
    assert [len(message.value()) for message in messages(servers, topic)] == [10 * 1024 * 1024] * 3
    small = make_topic()
    said = refusal(lambda: write(spark.sql("select repeat('x', 10 * 1024 * 1024) as value"), topic=small))
    assert f"rows could not be written to {small}-0: " in said
    assert values(servers, small) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"kafka_compresion_type": "lz4"},
            "there is no option kafka.compresion.type; did you mean kafka.compression.type?",
        ),
        ({"startingOffsets": "latest"}, "option startingOffsets is for reading, not for writing a batch; leave it out"),
        ({"kafka_acks": "1"}, "option kafka.acks must be all or -1, not '1'"),
        ({"kafka_compression_zstd_level": "99"}, "must be a whole number from -131072 to 22, not '99'"),
        ({"exactlyOnce": "true"}, "exactlyOnce is for the batches of a stream"),
        ({"mode": "errorifexists"}, 'Please use either the "Append"'),  # Spark's default mode, in Spark's words
        ({"mode": "overwrite"}, 'a topic can only be added to: write with mode("append")'),
    ],
)
def test_a_wrong_option_is_reported_in_a_sentence(
    spark: SparkSession, write: Write, make_topic: MakeTopic, options: dict[str, str], sentence: str
) -> None:
    said = refusal(lambda: write(spark.range(1).selectExpr("'v' as value"), topic="never", **options))
    assert sentence in said


def test_rows_that_cannot_be_written_fail_the_job(spark: SparkSession, write: Write, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    frame = spark.range(1)
    said = refusal(lambda: write(frame.selectExpr("'v' as value", "7 as partition"), topic=topic))
    assert f"a row has partition 7 for topic {topic}, which has 0 to 1" in said
    said = refusal(lambda: write(frame.selectExpr("'v' as value", "cast(null as string) as topic")))
    assert "the topic of a row is null (its value begins with 'v')" in said
    said = refusal(lambda: write(frame.selectExpr("'v' as value", "'x' as kye"), topic=topic))
    assert "there is no place in a record for column 'kye'" in said
    said = refusal(lambda: write(frame.selectExpr("'v' as value"), topic="no/such?topic"))
    assert "topic no/such?topic cannot be written to" in said


def test_a_missing_topic_that_may_not_be_auto_created_is_reported(spark: SparkSession, write: Write) -> None:
    with Cluster(config={"auto.create.topics.enable": False}) as cluster:
        said = refusal(
            lambda: write(
                spark.range(1).selectExpr("'v' as value"),
                topic="absent",
                **{"kafka.bootstrap.servers": cluster.bootstrap_servers, "kafka_request_timeout_ms": 5000},
            )
        )
    assert "topic absent cannot be written to" in said


def test_an_unreachable_broker_is_named(spark: SparkSession, write: Write) -> None:
    said = refusal(
        lambda: write(
            spark.range(1).selectExpr("'v' as value"),
            topic="t",
            **{"kafka.bootstrap.servers": "127.0.0.1:1", "kafka_request_timeout_ms": 500},
        )
    )
    assert "rows could not be written: " in said
    assert "127.0.0.1:1" in said
