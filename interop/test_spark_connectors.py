"""Spark's `format("kafka")` on Quire and Quire's `format("quire")` on Apache Kafka: the same jobs, the same results.

Each job runs three times: Spark's connector against Quire, Quire's source against Apache Kafka, and, to check the
expectation, Spark's connector against Apache Kafka.
"""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from interop.apache_kafka import ApacheKafka, settings
from quire.client.admin.topics import NewTopic, create_topics
from quire.client.partitioner import partition_for_key
from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_blocking import BlockingClient
from quire.protocol.records import Compression
from quire.testing import Cluster
from quire_samples.inventory.reading import read, whole
from quire_samples.inventory.topics import partitions_of

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
RECORDS = 500
START_MS = (time.time_ns() // 3_600_000_000_000) * 3_600_000
"""Within the last hour, because retention removes older records."""
_numbers = itertools.count()


@pytest.fixture(scope="module")
def apache(kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("kafka")
    chosen = settings(folder / "data")
    kafka.format(chosen, folder, CLUSTER_ID)
    with kafka.server(chosen, folder) as address:
        yield address


class Side(NamedTuple):
    """A connector and the cluster it talks to."""

    name: str
    servers: str

    def read(self, spark: SparkSession, **options: Any) -> DataFrame:
        return _with(spark.read.format(self.name), self.servers, options).load()  # type: ignore[no-any-return]

    def read_stream(self, spark: SparkSession, **options: Any) -> DataFrame:
        return _with(spark.readStream.format(self.name), self.servers, options).load()  # type: ignore[no-any-return]


def _with(builder: Any, servers: str, options: dict[str, Any]) -> Any:
    builder = builder.option("kafka.bootstrap.servers", servers)
    for name, value in options.items():
        builder = builder.option(name.replace("_", "."), value)
    return builder


@pytest.fixture(params=["kafka on Quire", "quire on Apache Kafka", "kafka on Apache Kafka"])
def side(request: pytest.FixtureRequest, quire: Cluster, apache: str) -> Side:
    name, _, cluster = request.param.partition(" on ")
    return Side(name, quire.bootstrap_servers if cluster == "Quire" else apache)


@pytest.fixture
def client(side: Side) -> Iterator[BlockingClient]:
    with BlockingClient(side.servers) as opened:
        yield opened


@pytest.fixture
def topic(client: BlockingClient) -> str:
    name = f"spark-{next(_numbers)}"
    for result in client.run(create_topics(client.cluster, [NewTopic(name, 3, 1)])).values():
        assert not isinstance(result, Exception), result
    return name


def fill(client: BlockingClient, topic: str, first: int = 0, count: int = RECORDS) -> None:
    """Numbered records with keys, headers and times, compressed in every way there is."""
    for compression in Compression:
        producer = Producer(client.cluster, ProducerConfig(compression=compression))
        client.run(producer.prepare(topic))
        for number in range(first + compression, first + count, len(Compression)):
            producer.send(
                topic,
                b"value %d" % number,
                key=b"key %d" % (number % 50),
                headers=[("number", b"%d" % number), ("nothing", None)],
                timestamp_ms=START_MS + number,
            )
        client.loop.run_until(producer.flush())
        assert producer.first_error is None


def values(frame: DataFrame) -> list[str]:
    return sorted(bytes(row.value).decode() for row in frame.select("value").collect())


def numbered(first: int, count: int) -> list[str]:
    return sorted(f"value {number}" for number in range(first, first + count))


def test_a_batch_has_every_record_with_all_its_columns(
    spark: SparkSession,
    side: Side,
    client: BlockingClient,
    topic: str,
) -> None:
    fill(client, topic)
    frame = side.read(spark, subscribe=topic, includeHeaders="true")
    assert values(frame) == numbered(0, RECORDS)
    (row,) = frame.where("CAST(value AS STRING) = 'value 77'").collect()
    assert (bytes(row.key), row.topic, row.timestampType) == (b"key 27", topic, 0)
    assert row.timestamp.timestamp() * 1000 == START_MS + 77
    assert [(header.key, header.value and bytes(header.value)) for header in row.headers] == [
        ("number", b"77"),
        ("nothing", None),
    ]


def test_both_connectors_see_the_same_rows_and_the_same_columns(
    spark: SparkSession,
    side: Side,
    client: BlockingClient,
    topic: str,
) -> None:
    fill(client, topic)
    frames = [
        Side(name, side.servers).read(spark, subscribe=topic, includeHeaders="true") for name in ("kafka", "quire")
    ]
    assert frames[0].dtypes == frames[1].dtypes
    rows = [sorted(map(repr, frame.collect())) for frame in frames]
    assert rows[0] == rows[1] != []


def test_a_batch_begins_and_ends_at_offsets_and_times(
    spark: SparkSession,
    side: Side,
    client: BlockingClient,
    topic: str,
) -> None:
    fill(client, topic)
    per_partition = {
        row.partition: row["count"] for row in side.read(spark, subscribe=topic).groupBy("partition").count().collect()
    }
    by_offset = side.read(
        spark,
        subscribe=topic,
        startingOffsets=f'{{"{topic}": {{"0": 10, "1": -2, "2": 5}}}}',
        endingOffsets=f'{{"{topic}": {{"0": 30, "1": -1, "2": 5}}}}',
    )
    counts = {row.partition: row["count"] for row in by_offset.groupBy("partition").count().collect()}
    assert counts == {0: 20, 1: per_partition[1]}
    later = side.read(
        spark, subscribePattern=f"^{topic}$", startingTimestamp=str(START_MS + RECORDS), endingOffsets="latest"
    )
    with pytest.raises(PySparkException):
        later.count()  # no record is that late, which is an error by default
    assert side.read(spark, assign=f'{{"{topic}": [1]}}').count() == per_partition[1]


def test_a_stream_continues_where_its_checkpoint_ends(
    spark: SparkSession,
    side: Side,
    client: BlockingClient,
    topic: str,
    tmp_path: Path,
) -> None:
    for round_ in range(3):
        fill(client, topic, first=RECORDS * round_)
        stream = side.read_stream(spark, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="200")
        query = (
            stream.selectExpr("CAST(value AS STRING) AS value")
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        written = sorted(row.value for row in spark.read.parquet(str(tmp_path / "out")).collect())
        assert written == numbered(0, RECORDS * (round_ + 1))


def test_read_committed_sees_what_was_committed_and_nothing_else(
    spark: SparkSession,
    side: Side,
    client: BlockingClient,
    topic: str,
    tmp_path: Path,
) -> None:
    producer = Producer(client.cluster, ProducerConfig(transactional_id=f"{topic}-writer", linger_ms=0))
    client.run(producer.init_transactions())
    client.run(producer.prepare(topic))
    for number in range(30):
        producer.begin()
        for partition in range(3):
            producer.send(topic, b"value %d" % (3 * number + partition), partition=partition)
        client.loop.run_until(producer.flush())
        client.run(producer.abort() if number % 3 == 1 else producer.commit())
    committed = sorted(f"value {number}" for number in range(90) if number // 3 % 3 != 1)
    assert values(side.read(spark, subscribe=topic, kafka_isolation_level="read_committed")) == committed
    assert len(values(side.read(spark, subscribe=topic))) == 90
    stream = side.read_stream(
        spark, subscribe=topic, startingOffsets="earliest", kafka_isolation_level="read_committed"
    )
    query = (
        stream.writeStream.format("memory")
        .queryName(topic.replace("-", "_"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert values(spark.table(topic.replace("-", "_"))) == committed


def written_to(client: BlockingClient, topic: str) -> list[tuple[int, bytes | None, bytes | None, Any]]:
    found: list[tuple[int, bytes | None, bytes | None, Any]] = []
    topic_partitions = client.run(partitions_of(client.cluster, topic))
    stretches = client.run(whole(client.cluster, topic_partitions))
    client.run(
        read(
            client.cluster,
            stretches,
            lambda topic_partition, record: found.append(
                (topic_partition.partition, record.key, record.value, list(record.headers or []))
            ),
        )
    )
    return sorted(found, key=repr)


def test_a_batch_is_written_with_keys_headers_and_kafkas_partitions(
    spark: SparkSession, side: Side, client: BlockingClient, topic: str
) -> None:
    rows = spark.range(200).selectExpr(
        f"'{topic}' AS topic",
        "CAST(concat('key ', id % 17) AS BINARY) AS key",
        "CAST(concat('value ', id) AS BINARY) AS value",
        "array(named_struct('key', 'number', 'value', CAST(CAST(id AS STRING) AS BINARY))) AS headers",
    )
    _with(rows.write.format(side.name).mode("append"), side.servers, {"includeHeaders": "true"}).save()
    written = written_to(client, topic)
    assert sorted(bytes(value or b"").decode() for _, _, value, _ in written) == numbered(0, 200)
    for partition, key, value, headers in written:
        assert key is not None and value is not None
        number = int(value.split()[1])
        assert (key, headers) == (b"key %d" % (number % 17), [("number", b"%d" % number)])
        assert partition == partition_for_key(key, 3)


def test_a_stream_is_written_and_what_it_wrote_is_all_there(
    spark: SparkSession, side: Side, client: BlockingClient, topic: str, tmp_path: Path
) -> None:
    copy = f"{topic}-copy"
    client.run(create_topics(client.cluster, [NewTopic(copy, 2, 1)]))
    for round_ in range(2):
        fill(client, topic, first=RECORDS * round_)
        rows = side.read_stream(spark, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="200")
        query = (
            _with(rows.select("key", "value").writeStream.format(side.name), side.servers, {"topic": copy})
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        # Nothing failed, so the connector that writes at least once has also written each row once.
        written = sorted(bytes(value or b"").decode() for _, _, value, _ in written_to(client, copy))
        assert written == numbered(0, RECORDS * (round_ + 1))
