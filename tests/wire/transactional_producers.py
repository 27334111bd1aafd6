"""Transactional producers of each real client behind one small interface, with their own behaviour."""

import asyncio
import contextlib
import threading
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import aiokafka
import confluent_kafka
import kafka
from aiokafka.producer import AIOKafkaProducer

from tests.wire.clients import WAIT_S

Offsets = Mapping[tuple[str, int], int]
"""Offsets by topic and partition."""


class TransactionalProducer(Protocol):
    """`send` does not wait; `commit` and `abort` wait for all records."""

    def begin(self) -> None: ...

    def send(self, topic: str, value: bytes, partition: int = 0) -> None: ...

    def flush(self) -> None:
        """Waits until everything is written; raises the first error."""
        ...

    def send_offsets(self, group: str, offsets: Offsets) -> None:
        """For a group without a member; `ConfluentProducer` also takes a consumer."""
        ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class ConfluentProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000, **settings: Any) -> None:
        self.producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": min(timeout_ms, 60_000),
                "linger.ms": 0,
                "retry.backoff.ms": 20,
                # librdkafka 2.16 forgets a broker when the connection is lost, and sometimes also the records for it.
                "metadata.recovery.strategy": "none",
                "log_level": 0,
            }
            | settings
        )
        self.producer.init_transactions(WAIT_S)

    def begin(self) -> None:
        self.producer.begin_transaction()

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self.producer.produce(topic, value, partition=partition)

    def flush(self) -> None:
        assert self.producer.flush(WAIT_S) == 0

    def send_offsets(self, group: str, offsets: Offsets) -> None:
        settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": group, "log_level": 0}
        outsider = confluent_kafka.Consumer(settings)
        self.send_offsets_of(outsider, offsets)
        outsider.close()

    def send_offsets_of(self, consumer: Any, offsets: Offsets) -> None:
        """As a member of the group, with its generation."""
        converted = [
            confluent_kafka.TopicPartition(*topic_partition, offset) for topic_partition, offset in offsets.items()
        ]
        self.producer.send_offsets_to_transaction(converted, consumer.consumer_group_metadata(), WAIT_S)

    def commit(self) -> None:
        self.producer.commit_transaction(WAIT_S)

    def abort(self) -> None:
        self.producer.abort_transaction(WAIT_S)

    def close(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a fenced producer cannot abort its open transaction
            self.producer.close()


class KafkaPythonProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self.producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=0,
            retry_backoff_ms=20,
            max_block_ms=int(WAIT_S * 1000),
        )
        self._sent: list[Any] = []
        self.producer.init_transactions()

    def begin(self) -> None:
        self.producer.begin_transaction()

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self._sent.append(self.producer.send(topic, value, partition=partition))

    def flush(self) -> None:
        sent, self._sent = self._sent, []
        for each in sent:
            each.get(WAIT_S)

    def send_offsets(self, group: str, offsets: Offsets) -> None:
        converted = {
            kafka.TopicPartition(*topic_partition): kafka.OffsetAndMetadata(offset, "", -1)
            for topic_partition, offset in offsets.items()
        }
        self.producer.send_offsets_to_transaction(converted, group)

    def commit(self) -> None:
        self.producer.commit_transaction()

    def abort(self) -> None:
        self.producer.abort_transaction()

    def close(self) -> None:
        self.producer.close(timeout=1)


class AiokafkaProducer:
    """Its event loop runs in a separate thread, also between the calls."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._loop = asyncio.new_event_loop()
        self._sent: list[Any] = []
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._run(self._start(bootstrap, transactional_id, timeout_ms))

    async def _start(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self.producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=0,
            retry_backoff_ms=20,
        )
        await self.producer.start()

    def begin(self) -> None:
        self._run(self.producer.begin_transaction())

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self._sent.append(self._run(self.producer.send(topic, value, partition=partition)))

    def flush(self) -> None:
        self._run(self._flush())

    async def _flush(self) -> None:
        sent, self._sent = self._sent, []
        for each in sent:
            await each

    def send_offsets(self, group: str, offsets: Offsets) -> None:
        converted = {aiokafka.TopicPartition(*topic_partition): offset for topic_partition, offset in offsets.items()}
        self._run(self.producer.send_offsets_to_transaction(converted, group))

    def commit(self) -> None:
        self._run(self.producer.commit_transaction())

    def abort(self) -> None:
        self._run(self.producer.abort_transaction())

    def close(self) -> None:
        self._run(self.producer.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(WAIT_S)


PRODUCERS: dict[str, Any] = {
    "confluent-kafka": ConfluentProducer,
    "kafka-python": KafkaPythonProducer,
    "aiokafka": AiokafkaProducer,
}


@contextlib.contextmanager
def transactional(client: str, bootstrap: str, transactional_id: str, **settings: Any) -> Iterator[Any]:
    """A producer that is closed at the end in any state."""
    producer = PRODUCERS[client](bootstrap, transactional_id, **settings)
    try:
        yield producer
    finally:
        with contextlib.suppress(Exception):  # even closing a fenced producer raises an error
            producer.close()
