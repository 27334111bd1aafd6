"""Offsets looked up and records deleted through admin clients."""

import asyncio

import kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete as AioRecordsToDelete
from aiokafka.structs import TopicPartition as AioTopicPartition
from confluent_kafka import OFFSET_END, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from kafka.admin import KafkaAdminClient
from kafka.admin import OffsetSpec as PythonOffsetSpec

from tests.wire.clients import WAIT_S, Client, Confluent, Message, confluent_consumer
from tests.wire.conftest import MakeTopic

LONG_AGO_MS = 1_500_000_000_000


def offset(admin: AdminClient, topic: str, spec: OffsetSpec) -> tuple[int, int]:
    asked = TopicPartition(topic, 0)
    found = admin.list_offsets({asked: spec})[asked].result(WAIT_S)
    return found.offset, found.timestamp


def delete_before(admin: AdminClient, topic: str, before: int, partition: int = 0) -> int:
    asked = TopicPartition(topic, partition, before)
    (deleted,) = admin.delete_records([asked]).values()
    low: int = deleted.result(WAIT_S).low_watermark
    return low


def code_of(caught: pytest.ExceptionInfo[KafkaException]) -> int:
    error: KafkaError = caught.value.args[0]
    return int(error.code())


def test_offsets_are_listed_by_every_spec(bootstrap: str, admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    stamps = [LONG_AGO_MS + 10, LONG_AGO_MS + 30, LONG_AGO_MS + 20]
    for stamp in stamps:
        Confluent().produce(bootstrap, topic, [Message(b"v", timestamp_ms=stamp)])
    assert offset(admin, topic, OffsetSpec.earliest()) == (0, -1)
    assert offset(admin, topic, OffsetSpec.latest()) == (3, -1)
    assert offset(admin, topic, OffsetSpec.max_timestamp()) == (1, LONG_AGO_MS + 30)
    assert offset(admin, topic, OffsetSpec.for_timestamp(LONG_AGO_MS + 11)) == (1, LONG_AGO_MS + 30)


def test_an_empty_partition_starts_and_ends_at_zero(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    assert offset(admin, topic, OffsetSpec.earliest())[0] == 0
    assert offset(admin, topic, OffsetSpec.latest())[0] == 0
    assert offset(admin, topic, OffsetSpec.max_timestamp()) == (-1, -1)


def test_offsets_of_a_missing_partition(admin: AdminClient, make_topic: MakeTopic) -> None:
    asked = TopicPartition(make_topic(), 7)
    with pytest.raises(KafkaException) as caught:
        admin.list_offsets({asked: OffsetSpec.latest()}, request_timeout=2)[asked].result(WAIT_S)
    assert caught.value.args[0].code() == KafkaError._NOENT, "librdkafka finds no leader for it"


def test_records_before_an_offset_are_deleted_and_the_rest_is_served(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic()
    client.produce(bootstrap, topic, [Message(b"%d" % n) for n in range(10)])
    assert delete_before(admin, topic, 4) == 4
    assert offset(admin, topic, OffsetSpec.earliest())[0] == 4
    received = client.consume(bootstrap, topic, 6, offset=4)
    assert [record.offset for record in received] == [4, 5, 6, 7, 8, 9]


def test_deleting_to_the_end_leaves_an_empty_partition_that_keeps_counting(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    Confluent().produce(bootstrap, topic, [Message(b"v")] * 3)
    assert delete_before(admin, topic, OFFSET_END) == 3
    assert offset(admin, topic, OffsetSpec.earliest())[0] == 3
    assert Confluent().produce(bootstrap, topic, [Message(b"w")]) == [3]


def test_deleting_below_the_start_changes_nothing(bootstrap: str, admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    Confluent().produce(bootstrap, topic, [Message(b"v")] * 5)
    delete_before(admin, topic, 3)
    assert delete_before(admin, topic, 1) == 3


def test_deleting_past_the_end_is_refused(bootstrap: str, admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    Confluent().produce(bootstrap, topic, [Message(b"v")])
    with pytest.raises(KafkaException) as caught:
        delete_before(admin, topic, 9)
    assert code_of(caught) == KafkaError.OFFSET_OUT_OF_RANGE


def test_records_of_a_compacted_only_topic_cannot_be_deleted(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(cleanup_policy="compact")
    Confluent().produce(bootstrap, topic, [Message(b"v", key=b"k")])
    with pytest.raises(KafkaException) as caught:
        delete_before(admin, topic, 1)
    assert code_of(caught) == KafkaError.POLICY_VIOLATION


def test_a_compacted_topic_refuses_records_without_a_key(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(cleanup_policy="compact")
    with pytest.raises(KafkaException) as caught:
        Confluent().produce(bootstrap, topic, [Message(b"no key")])
    assert code_of(caught) == KafkaError.INVALID_RECORD


def test_reading_what_was_deleted_or_never_was_is_out_of_range(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    Confluent().produce(bootstrap, topic, [Message(b"%d" % n) for n in range(5)])
    delete_before(admin, topic, 3)
    consumer = confluent_consumer(bootstrap, **{"auto.offset.reset": "earliest"})
    try:
        consumer.assign([TopicPartition(topic, 0, 1)])
        message = None
        for _ in range(20):
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                break
        assert message is not None
        assert message.offset() == 3
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=WAIT_S) == (3, 5)
    finally:
        consumer.close()


def test_kafka_python_lists_offsets_and_deletes_records(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    Confluent().produce(bootstrap, topic, [Message(b"v")] * 5)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        partition = kafka.TopicPartition(topic, 0)
        admin.delete_records({partition: 2})
        earliest = admin.list_partition_offsets({partition: PythonOffsetSpec.EARLIEST})[partition]
        latest = admin.list_partition_offsets({partition: PythonOffsetSpec.LATEST})[partition]
        assert (earliest.offset, latest.offset) == (2, 5)
    finally:
        admin.close()


def test_aiokafka_deletes_records(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    Confluent().produce(bootstrap, topic, [Message(b"v")] * 5)

    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            partition = AioTopicPartition(topic, 0)
            deleted = await admin.delete_records({partition: AioRecordsToDelete(before_offset=2)})
            assert deleted == {partition: 2}
        finally:
            await admin.close()

    asyncio.run(asyncio.wait_for(run(), WAIT_S))
