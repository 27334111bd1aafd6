"""Retention as clients see it: a setting changes, and after a while a partition starts later.

Apache Kafka only looks every `log.retention.check.interval.ms`, so run these with a short one against it.
"""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, OffsetSpec

from quire.testing import Cluster
from tests.wire.clients import OTHER_BROKER, WAIT_S, Confluent, Message, confluent_consumer, eventually
from tests.wire.conftest import MakeTopic

SEGMENT_BYTES = 1 << 20
"""The smallest size that users may set."""
PER_SEGMENT = 10
VALUE = b"x" * (SEGMENT_BYTES // PER_SEGMENT - 200)


def alter(admin: AdminClient, kind: ConfigResource.Type, name: str, **settings: str) -> None:
    entries = [
        ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for key, value in settings.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)


def offsets(admin: AdminClient, topic: str) -> tuple[int, int]:
    """The start and end offset of the partition."""
    asked = TopicPartition(topic, 0)
    first, last = (
        admin.list_offsets({asked: spec})[asked].result(WAIT_S).offset
        for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
    )
    return first, last


def write(bootstrap: str, topic: str, count: int, *, timestamp_ms: int | None = None) -> None:
    for _ in range(count):
        Confluent().produce(bootstrap, topic, [Message(VALUE, timestamp_ms=timestamp_ms)])


def test_a_smaller_retention_bytes_drops_the_oldest_segments(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(segment_bytes=str(SEGMENT_BYTES))
    write(bootstrap, topic, 3 * PER_SEGMENT + 2)
    assert offsets(admin, topic) == (0, 3 * PER_SEGMENT + 2)
    alter(admin, ConfigResource.Type.TOPIC, topic, retention_bytes=str(SEGMENT_BYTES * 3 // 2))
    eventually(lambda: offsets(admin, topic) == (PER_SEGMENT, 3 * PER_SEGMENT + 2))
    found = Confluent().consume(bootstrap, topic, 2 * PER_SEGMENT + 2, offset=PER_SEGMENT)
    assert [record.offset for record in found] == list(range(PER_SEGMENT, 3 * PER_SEGMENT + 2))


def test_an_expired_log_is_empty_and_continues_where_it_ended(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(segment_bytes=str(SEGMENT_BYTES))
    write(bootstrap, topic, PER_SEGMENT + 2, timestamp_ms=time.time_ns() // 1_000_000 - 60_000)
    alter(admin, ConfigResource.Type.TOPIC, topic, retention_ms="1000")
    eventually(lambda: offsets(admin, topic) == (PER_SEGMENT + 2, PER_SEGMENT + 2))
    alter(admin, ConfigResource.Type.TOPIC, topic, retention_ms="-1")
    assert Confluent().produce(bootstrap, topic, [Message(b"later")]) == [PER_SEGMENT + 2]
    (record,) = Confluent().consume(bootstrap, topic, 1, offset=PER_SEGMENT + 2)
    assert record.value == b"later"


def test_reading_deleted_records_is_an_error(bootstrap: str, admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(segment_bytes=str(SEGMENT_BYTES))
    write(bootstrap, topic, 2, timestamp_ms=time.time_ns() // 1_000_000 - 60_000)
    alter(admin, ConfigResource.Type.TOPIC, topic, retention_ms="1000")
    eventually(lambda: offsets(admin, topic) == (2, 2))
    consumer = confluent_consumer(bootstrap)
    try:
        consumer.assign([TopicPartition(topic, 0, 1)])
        message = consumer.poll(WAIT_S)
        assert message is not None
        error = message.error()
        assert error is not None
        # librdkafka's own error for OFFSET_OUT_OF_RANGE if the program does not say where to continue.
        assert error.code() == KafkaError._AUTO_OFFSET_RESET
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("key", "value"),
    [("remote.storage.enable", "true"), ("local.retention.ms", "1000"), ("local.retention.bytes", "1000")],
)
@pytest.mark.skipif(OTHER_BROKER is not None, reason="another broker may have a second tier")
def test_a_second_tier_of_storage_is_refused(admin: AdminClient, make_topic: MakeTopic, key: str, value: str) -> None:
    topic = make_topic()
    with pytest.raises(KafkaException) as refused:
        alter(admin, ConfigResource.Type.TOPIC, topic, **{key.replace(".", "_"): value})
    error = refused.value.args[0]
    assert error.code() == KafkaError.INVALID_CONFIG
    assert "no tiered storage" in error.str()


class TestWithoutAnybodyChangingAnything:
    """A separate node with frequent retention checks and small segments."""

    @pytest.fixture
    def cluster(self) -> Iterator[Cluster]:
        settings = {"log.retention.check.interval.ms": 50, "log.initial.task.delay.ms": 0}
        with Cluster(config=settings) as running:
            yield running

    def test_records_go_when_they_are_old_and_their_files_with_them(self, cluster: Cluster) -> None:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        settings = {"retention.ms": "300", "file.delete.delay.ms": "0", "internal.segment.bytes": "1000"}
        admin.create_topics([NewTopic("t", 1, 1, config=settings)])["t"].result(WAIT_S)
        for _ in range(5):
            Confluent().produce(cluster.bootstrap_servers, "t", [Message(bytes(900))])
        eventually(lambda: offsets(admin, "t") == (5, 5))
        assert "older than retention.ms=300" in cluster.log()
        folder = cluster.data_dir / "t-0"
        eventually(lambda: [path.name for path in folder.glob("*.log*")] == [f"{5:020d}.log"])

        cluster.kill()
        cluster.restart()
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        assert offsets(admin, "t") == (5, 5)
        Confluent().produce(cluster.bootstrap_servers, "t", [Message(b"new")])
        eventually(lambda: offsets(admin, "t") == (6, 6))
