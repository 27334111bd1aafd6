"""Reads a partition to its end with each real client: committed records only, or all of them."""

import asyncio
import time
from typing import Any

import aiokafka
import confluent_kafka
import kafka

from tests.wire.clients import WAIT_S

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


def read_confluent(bootstrap: str, topic: str, isolation: str = COMMITTED, partition: int = 0) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "by-assignment-only",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "isolation.level": isolation,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
        values: list[bytes] = []
        while True:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"the end did not come, after {len(values)} records"
            if message.error() is None:
                values.append(message.value())
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                return values
            else:
                raise confluent_kafka.KafkaException(message.error())
    finally:
        consumer.close()


def read_kafka_python(bootstrap: str, topic: str, isolation: str = COMMITTED, partition: int = 0) -> list[bytes]:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation)
    try:
        topic_partition = kafka.TopicPartition(topic, partition)
        consumer.assign([topic_partition])
        consumer.seek_to_beginning(topic_partition)
        end = consumer.end_offsets([topic_partition])[topic_partition]
        values: list[bytes] = []
        deadline = time.monotonic() + WAIT_S
        while consumer.position(topic_partition) < end:
            assert time.monotonic() < deadline, f"the end at {end} did not come, after {len(values)} records"
            for records in consumer.poll(timeout_ms=200).values():
                values += [record.value for record in records]
        return values
    finally:
        consumer.close()


def read_aiokafka(bootstrap: str, topic: str, isolation: str = COMMITTED, partition: int = 0) -> list[bytes]:
    async def read() -> list[bytes]:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation)
        await consumer.start()
        try:
            topic_partition = aiokafka.TopicPartition(topic, partition)
            consumer.assign([topic_partition])
            await consumer.seek_to_beginning(topic_partition)
            end = (await consumer.end_offsets([topic_partition]))[topic_partition]
            values: list[bytes] = []
            while await consumer.position(topic_partition) < end:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    values += [record.value for record in records]
            return values
        finally:
            await consumer.stop()

    return asyncio.run(asyncio.wait_for(read(), WAIT_S))


READERS: dict[str, Any] = {
    "confluent-kafka": read_confluent,
    "kafka-python": read_kafka_python,
    "aiokafka": read_aiokafka,
}
