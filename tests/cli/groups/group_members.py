"""Members of groups for the tests of `quire groups`: confluent-kafka's consumers, in either protocol."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import confluent_kafka

PATIENCE_S = 30.0
PROTOCOLS = ("classic", "consumer")


def consumer(servers: str, group: str, **settings: Any) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
        | {name.replace("_", "."): value for name, value in settings.items()}
    )


@contextmanager
def members(
    servers: str, group: str, topic: str, *, protocol: str, partitions: int, count: int = 1, **settings: Any
) -> Iterator[list[confluent_kafka.Consumer]]:
    """`count` members that have divided all partitions of the topic among themselves; they leave at the end of the
    block."""
    joined = [
        consumer(servers, group, group_protocol=protocol, client_id=f"reader-{index}", **settings)
        for index in range(count)
    ]
    try:
        for each in joined:
            each.subscribe([topic])
        _wait_until_all_is_read(joined, partitions)
        yield joined
    finally:
        for each in joined:
            each.close()


def _wait_until_all_is_read(joined: Sequence[confluent_kafka.Consumer], partitions: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not all(each.assignment() for each in joined) or sum(len(each.assignment()) for each in joined) < partitions:
        assert time.monotonic() < deadline, "the members did not get their partitions in time"
        for each in joined:
            each.poll(0.05)


def commit(servers: str, group: str, topic: str, *offsets: int) -> None:
    """Commits an offset for each partition without joining the group, like a consumer that assigns partitions to
    itself."""
    alone = consumer(servers, group)
    topic_partitions = [confluent_kafka.TopicPartition(topic, index, offset) for index, offset in enumerate(offsets)]
    try:
        for committed in alone.commit(offsets=topic_partitions, asynchronous=False):
            assert committed.error is None, committed.error
    finally:
        alone.close()
