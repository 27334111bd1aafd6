"""Compaction as clients see it: after a while only the last value of each key is left, at its offset."""

import random
from collections.abc import Iterator

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from quire.testing import Cluster
from tests.wire.clients import WAIT_S, Confluent, Message, Received, confluent_consumer, eventually
from tests.wire.test_retention_settings import offsets

KEYS = 200
RECORDS = 6_000
SETTINGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "internal.segment.bytes": "30000",
    "delete.retention.ms": "0",
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A separate node with a cleaner that runs often."""
    with Cluster(config={"log.cleaner.backoff.ms": 50}) as running:
        yield running


def read_all(bootstrap: str, topic: str, end_offset: int) -> list[Received]:
    """All records from the start to the end."""
    consumer = confluent_consumer(bootstrap)
    found = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = consumer.poll(WAIT_S)
            assert message is not None and message.error() is None, message and message.error()
            kind, timestamp = message.timestamp()
            offset = message.offset()
            assert offset is not None
            found.append(Received(offset, message.key(), message.value(), [], timestamp, kind))
            if offset == end_offset - 1:
                return found
    finally:
        consumer.close()


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_only_the_last_value_of_each_key_is_left(cluster: Cluster, compression: str) -> None:
    bootstrap = cluster.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("t", 1, 1, config=SETTINGS)])["t"].result(WAIT_S)
    dice = random.Random(7)
    written: dict[int, tuple[bytes, bytes | None]] = {}
    for start in range(0, RECORDS, 500):
        batch = []
        for offset in range(start, start + 500):
            value = None if dice.random() < 0.1 else b"value %d" % offset
            written[offset] = (b"key %d" % dice.randrange(KEYS), value)
            batch.append(Message(value, written[offset][0]))
        Confluent().produce(bootstrap, "t", batch, compression=compression)
    # The active segment is never compacted: these records make it roll.
    for number in range(4):
        Confluent().produce(bootstrap, "t", [Message(bytes(20_000), b"filler %d" % number)])
    end = RECORDS + 4
    last_offset = {key: offset for offset, (key, _) in written.items()}
    expected = {key: written[offset][1] for key, offset in last_offset.items() if written[offset][1] is not None}

    def is_compacted() -> bool:
        found = [record for record in read_all(bootstrap, "t", end) if record.offset < RECORDS]
        assert all(written[record.offset] == (record.key, record.value) for record in found)
        assert {record.key: record.value for record in found if record.value is not None}.items() >= expected.items()
        return len([record for record in found if record.value is not None]) == len(expected)

    eventually(is_compacted)
    assert offsets(admin, "t") == (0, end)
    cluster.kill()
    cluster.restart()
    found = read_all(cluster.bootstrap_servers, "t", end)
    assert {record.key: record.value for record in found if record.offset < RECORDS and record.value} == expected
