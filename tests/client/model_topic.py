"""A topic in the model cluster: writing records to it, and a consumer that reads them."""

from quire.client.consumer import Consumer, ConsumerConfig, Start
from quire.client.offsets import TopicPartition
from quire.client.producer import Producer, ProducerConfig
from tests.client.model_cluster import ModelCluster

FIRST = TopicPartition("t", 0)


def write(model: ModelCluster, partition: int, *values: bytes) -> None:
    """Appends records directly to the model's log, each as a batch."""
    producer = Producer(model.client(), ProducerConfig(batch_bytes=1, linger_ms=0, idempotent=False))
    model.run(producer.prepare("t"))
    for index, value in enumerate(values):
        producer.send("t", value, partition=partition, timestamp_ms=1000 * (index + 1))
    model.wait(producer.flush())


def reading(model: ModelCluster, starts: dict[TopicPartition, Start], config: ConsumerConfig | None = None) -> Consumer:
    consumer = Consumer(model.client(), config)
    model.run(consumer.assign(starts))
    return consumer


def take(model: ModelCluster, consumer: Consumer, count: int) -> list[tuple[int, int, bytes | None]]:
    """(partition, offset, value) of the next `count` records."""
    found: list[tuple[int, int, bytes | None]] = []
    while len(found) < count:
        model.wait(consumer.arrival())
        for fetched in consumer.poll():
            found += [(fetched.topic_partition.partition, record.offset, record.value) for record in fetched.records()]
    return found
