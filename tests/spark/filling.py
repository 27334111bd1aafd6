"""Writes records to a topic in exactly the batches that a test needs, or with Spark."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from quire.client.producer import Producer, ProducerConfig
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from quire.protocol.records import Record, build_batch
from quire.steps import Steps, wait

DAY_MS = 1_700_000_000_000


def record(value: bytes | None, key: bytes | None = None, timestamp: int = DAY_MS, headers: Any = None) -> Record:
    return Record(0, timestamp, key, value, headers)


def append(client: BlockingClient, topic: str, records: Sequence[Record], partition: int = 0, **batch: Any) -> int:
    """Writes the records as one batch (`batch` goes to `build_batch`) and returns the first one's offset."""
    return append_bytes(client, topic, bytes(build_batch(records, **batch)), partition)


def append_bytes(client: BlockingClient, topic: str, records: bytes, partition: int = 0) -> int:
    def steps() -> Steps[int]:
        cluster = client.cluster
        yield from cluster.refresh([topic])
        leader = cluster.metadata.leader(topic, partition)
        assert leader is not None
        data = TopicProduceData(
            name=topic,
            topic_id=cluster.metadata.topics[topic].topic_id,
            partition_data=[PartitionProduceData(index=partition, records=records)],
        )
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
        answer = yield from wait(cluster.call(leader, request))
        assert isinstance(answer, ProduceResponse)
        (result,) = answer.responses[0].partition_responses
        if result.error_code:
            raise ApiError(ErrorCode(result.error_code), result.error_message or "")
        return result.base_offset

    return client.run(steps())


def open_transaction(client: BlockingClient, topic: str, records: int = 1) -> Producer:
    """Writes this many records with the value `open` to partition 0, in a transaction that the caller ends."""
    producer = Producer(client.cluster, ProducerConfig(transactional_id=f"{topic}-writer"))
    client.run(producer.init_transactions())
    client.run(producer.prepare(topic))
    producer.begin()
    for _ in range(records):
        producer.send(topic, b"open", partition=0)
    client.loop.run_until(producer.flush())
    return producer


def read(spark: SparkSession, servers: str, **options: Any) -> DataFrame:
    """A batch reader; `_` in an option's name stands for a dot."""
    reader = spark.read.format("quire").option("kafka.bootstrap.servers", servers)
    for name, value in options.items():
        reader = reader.option(name.replace("_", "."), value)
    return reader.load()


def read_stream(spark: SparkSession, servers: str, **options: Any) -> DataFrame:
    reader = spark.readStream.format("quire").option("kafka.bootstrap.servers", servers)
    for name, value in options.items():
        reader = reader.option(name.replace("_", "."), value)
    return reader.load()
