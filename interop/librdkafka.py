"""Reads everything that a broker serves with librdkafka: a second opinion on `tests.golden.served`."""

from typing import Any

import confluent_kafka

from tests.golden.served import Partitions, as_text

WAIT_S = 30.0


def read_everything(bootstrap: str, like: Partitions) -> Partitions:
    """The expected result: the same partitions and offsets, with records and committed offsets read again."""
    return {name: {**found, **_partition(bootstrap, *name.rsplit("-", 1))} for name, found in like.items()}


def _partition(bootstrap: str, topic: str, partition: str) -> dict[str, Any]:
    committed = _read(bootstrap, topic, int(partition), "read_committed")
    return {
        "records": _read(bootstrap, topic, int(partition), "read_uncommitted"),
        "committed": [record["offset"] for record in committed],
    }


def _read(bootstrap: str, topic: str, partition: int, isolation: str) -> list[dict[str, Any]]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, confluent_kafka.OFFSET_BEGINNING)])
        found: list[dict[str, Any]] = []
        while True:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"{topic}-{partition} did not come to its end, after {found[-1:]}"
            if message.error() is None:
                found.append(_record(message))
            else:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
                return found
    finally:
        consumer.close()


def _record(message: Any) -> dict[str, Any]:
    return {
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "key": as_text(message.key()),
        "value": as_text(message.value()),
        "headers": [[name, as_text(content)] for name, content in message.headers() or []],
    }
