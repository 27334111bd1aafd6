"""The three real clients behind one small interface, so that one test runs with each of them.

Settings that differ only in spelling are translated here; features that a client lacks are left out, not imitated.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import confluent_kafka
import kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.structs import TopicPartition as AioTopicPartition

OTHER_BROKER = os.environ.get("QUIRE_WIRE_BOOTSTRAP")
"""The address of the broker to test; None starts a Quire node."""
WAIT_S = 50.0
"""For everything that a node does. A busy machine may need most of it. Less than the timeout of a transaction."""
TEN_MEGABYTES = 10 * 1024 * 1024
CLIENT_LIMIT_BYTES = TEN_MEGABYTES + 100_000

Headers = list[tuple[str, bytes | None]]


@dataclass(slots=True, frozen=True)
class Message:
    value: bytes | None
    key: bytes | None = None
    headers: Headers = field(default_factory=list)
    timestamp_ms: int | None = None


class Received(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int
    timestamp_type: int

    @property
    def content(self) -> tuple[bytes | None, bytes | None, Headers]:
        return self.key, self.value, self.headers


class Client(Protocol):
    name: str

    def produce(
        self,
        bootstrap: str,
        topic: str,
        messages: Sequence[Message],
        *,
        partition: int = 0,
        compression: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        """Sends all messages, waits, and returns the offset of each."""
        ...

    def consume(self, bootstrap: str, topic: str, count: int, *, partition: int = 0, offset: int = 0) -> list[Received]:
        """Reads `count` records from `offset` on, by assignment."""
        ...

    def offset_at_time(self, bootstrap: str, topic: str, timestamp_ms: int) -> int | None:
        """The first offset of partition 0 whose record is not older; None if there is none."""
        ...


class Confluent:
    name = "confluent-kafka"

    def produce(
        self,
        bootstrap: str,
        topic: str,
        messages: Sequence[Message],
        *,
        partition: int = 0,
        compression: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": compression,
                "acks": acks,
                "enable.idempotence": idempotent,
                "linger.ms": 5,
                "message.max.bytes": CLIENT_LIMIT_BYTES,
                "queue.buffering.max.kbytes": 4 * CLIENT_LIMIT_BYTES // 1024,
            }
        )
        offsets = [-2] * len(messages)
        errors: list[Any] = []

        def delivered(error: Any, message: Any, index: int) -> None:
            if error is not None:
                errors.append(error)
            else:
                offsets[index] = message.offset()

        for index, message in enumerate(messages):
            producer.produce(
                topic,
                value=message.value,
                key=message.key,
                headers=message.headers,
                partition=partition,
                timestamp=message.timestamp_ms or 0,
                on_delivery=lambda error, sent, index=index: delivered(error, sent, index),
            )
        assert producer.flush(WAIT_S) == 0, "not everything was acknowledged in time"
        if errors:
            raise confluent_kafka.KafkaException(errors[0])
        return offsets

    def consume(self, bootstrap: str, topic: str, count: int, *, partition: int = 0, offset: int = 0) -> list[Received]:
        consumer = confluent_consumer(bootstrap)
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, partition, offset)])
            return [
                Received(
                    message.offset(),
                    message.key(),
                    message.value(),
                    message.headers() or [],
                    *_stamp(message.timestamp()),
                )
                for message in confluent_read(consumer, count)
            ]
        finally:
            consumer.close()

    def offset_at_time(self, bootstrap: str, topic: str, timestamp_ms: int) -> int | None:
        consumer = confluent_consumer(bootstrap)
        try:
            asked = [confluent_kafka.TopicPartition(topic, 0, timestamp_ms)]
            (found,) = consumer.offsets_for_times(asked, timeout=WAIT_S)
            assert found.error is None, found.error
            return found.offset if found.offset >= 0 else None
        finally:
            consumer.close()


class KafkaPython:
    name = "kafka-python"

    def produce(
        self,
        bootstrap: str,
        topic: str,
        messages: Sequence[Message],
        *,
        partition: int = 0,
        compression: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if compression == "none" else compression,
            acks=acks if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            linger_ms=5,
            max_request_size=CLIENT_LIMIT_BYTES,
        )
        try:
            sent = [
                producer.send(
                    topic,
                    value=message.value,
                    key=message.key,
                    headers=message.headers,
                    partition=partition,
                    timestamp_ms=message.timestamp_ms,
                )
                for message in messages
            ]
            producer.flush(WAIT_S)
            return [future.get(WAIT_S).offset for future in sent]
        finally:
            producer.close()

    def consume(self, bootstrap: str, topic: str, count: int, *, partition: int = 0, offset: int = 0) -> list[Received]:
        consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, max_partition_fetch_bytes=CLIENT_LIMIT_BYTES)
        try:
            assigned = kafka.TopicPartition(topic, partition)
            consumer.assign([assigned])
            consumer.seek(assigned, offset)
            found: list[Received] = []
            deadline = time.monotonic() + WAIT_S
            while len(found) < count:
                assert time.monotonic() < deadline, f"only {len(found)} of {count} records came"
                for records in consumer.poll(timeout_ms=500).values():
                    found += [
                        Received(r.offset, r.key, r.value, list(r.headers), r.timestamp, r.timestamp_type)
                        for r in records
                    ]
            return found[:count]
        finally:
            consumer.close()

    def offset_at_time(self, bootstrap: str, topic: str, timestamp_ms: int) -> int | None:
        consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap)
        try:
            asked = kafka.TopicPartition(topic, 0)
            found = consumer.offsets_for_times({asked: timestamp_ms})[asked]
            return None if found is None else int(found.offset)
        finally:
            consumer.close()


class Aiokafka:
    name = "aiokafka"

    def produce(
        self,
        bootstrap: str,
        topic: str,
        messages: Sequence[Message],
        *,
        partition: int = 0,
        compression: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        async def run() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if compression == "none" else compression,
                acks=acks if acks == "all" else int(acks),
                enable_idempotence=idempotent,
                linger_ms=5,
                max_request_size=CLIENT_LIMIT_BYTES,
            )
            await producer.start()
            try:
                sent = [
                    await producer.send(
                        topic,
                        value=message.value,
                        key=message.key,
                        headers=message.headers,
                        partition=partition,
                        timestamp_ms=message.timestamp_ms,
                    )
                    for message in messages
                ]
                await producer.flush()
                stored = [await future for future in sent]
                return [-1 if each is None else each.offset for each in stored]  # None with acks=0
            finally:
                await producer.stop()

        return asyncio.run(asyncio.wait_for(run(), WAIT_S))

    def consume(self, bootstrap: str, topic: str, count: int, *, partition: int = 0, offset: int = 0) -> list[Received]:
        async def run() -> list[Received]:
            consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, max_partition_fetch_bytes=CLIENT_LIMIT_BYTES)
            await consumer.start()
            try:
                assigned = AioTopicPartition(topic, partition)
                consumer.assign([assigned])
                consumer.seek(assigned, offset)
                records = [await consumer.getone() for _ in range(count)]
                return [
                    Received(r.offset, r.key, r.value, list(r.headers), r.timestamp, r.timestamp_type) for r in records
                ]
            finally:
                await consumer.stop()

        return asyncio.run(asyncio.wait_for(run(), WAIT_S))

    def offset_at_time(self, bootstrap: str, topic: str, timestamp_ms: int) -> int | None:
        async def run() -> int | None:
            consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
            await consumer.start()
            try:
                asked = AioTopicPartition(topic, 0)
                found = (await consumer.offsets_for_times({asked: timestamp_ms}))[asked]
                return None if found is None else int(found.offset)
            finally:
                await consumer.stop()

        return asyncio.run(asyncio.wait_for(run(), WAIT_S))


def eventually(condition: Callable[[], bool], wait_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + wait_s
    while not condition():
        assert time.monotonic() < deadline, "this did not come true in time"
        time.sleep(0.02)


def at_once(condition: Callable[[], bool]) -> None:
    """For a condition that holds on Quire as soon as a change is answered, and on Apache Kafka a little later."""
    if OTHER_BROKER is None:
        assert condition()
        return

    def came_true() -> bool:
        try:
            return condition()
        except (AssertionError, LookupError, confluent_kafka.KafkaException):
            return False

    eventually(came_true)


def confluent_consumer(bootstrap: str, **settings: Any) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "by-assignment-only",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": CLIENT_LIMIT_BYTES,
            "auto.offset.reset": "error",
            "check.crcs": True,
        }
        | settings
    )


def confluent_read(consumer: confluent_kafka.Consumer, count: int) -> list[Any]:
    """`count` messages; ignores the errors that a consumer without a group reports."""
    found: list[Any] = []
    deadline = time.monotonic() + WAIT_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"only {len(found)} of {count} records came"
        message = consumer.poll(0.5)
        if message is None:
            continue
        if message.error() is not None:
            assert "oordinator" in str(message.error()), message.error()
            continue
        found.append(message)
    return found


def _stamp(timestamp: tuple[int, int]) -> tuple[int, int]:
    """(milliseconds, 0 for CreateTime or 1 for LogAppendTime), as the record format counts them."""
    kind, timestamp_ms = timestamp
    return timestamp_ms, 0 if kind == confluent_kafka.TIMESTAMP_CREATE_TIME else 1


CLIENTS: list[Client] = [Confluent(), KafkaPython(), Aiokafka()]
