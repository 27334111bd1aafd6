"""Clients that write numbered records while nodes fail, and remember what was acknowledged."""

import threading
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from tests.crash.verdict import Verdict, missing, out_of_order, repeated
from tests.wire.clients import WAIT_S, confluent_consumer, confluent_read

PARTITIONS = 3
TOPIC = "under-load"
IDEMPOTENT: dict[str, Any] = {"acks": "all", "enable.idempotence": True}
PLAIN: dict[str, Any] = {"acks": 1, "enable.idempotence": False}


class Load:
    """Writes numbered records to all partitions until told to stop, and remembers what was acknowledged."""

    def __init__(self, bootstrap: str, *, most_waiting: int = 5000, **settings: Any) -> None:
        self._most_waiting = most_waiting
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 1,
                "batch.num.messages": 50,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "message.timeout.ms": 300_000,
                "log_level": 0,
            }
            | settings
        )
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.acknowledged: list[dict[int, bytes]] = [{} for _ in range(PARTITIONS)]
        self.count = 0
        self.errors: list[Any] = []
        self._thread.start()

    def wait_for_more(self, count: int) -> None:
        with self._changed:
            wanted = self.count + count
            assert self._changed.wait_for(lambda: self.count >= wanted or self.errors, WAIT_S * 2), self.count
            assert not self.errors, self.errors

    def finish(self) -> None:
        self._stopping = True
        self._thread.join(WAIT_S)
        assert self._producer.flush(WAIT_S * 2) == 0
        assert not self.errors, self.errors

    def abandon(self) -> None:
        """Sends nothing more; the result of unacknowledged records stays unknown."""
        self._stopping = True
        self._thread.join(WAIT_S)
        self._producer.purge()
        self._producer.flush(WAIT_S)

    def _run(self) -> None:
        number = 0
        while not self._stopping:
            partition = number % PARTITIONS
            value = b"%08d" % number + b"." * 500
            try:
                self._producer.produce(TOPIC, value, partition=partition, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(0.01)
                continue
            self.sent[partition].append(value)
            number += 1
            self._producer.poll(0)
            while len(self._producer) > self._most_waiting and not self._stopping:
                self._producer.poll(0.01)

    def _delivered(self, error: Any, message: Any) -> None:
        with self._changed:
            if error is not None:
                self.errors.append(error)
            else:
                self.acknowledged[message.partition()][message.offset()] = message.value()
                self.count += 1
            self._changed.notify_all()


def create_topic(bootstrap: str, name: str = TOPIC, partitions: int = PARTITIONS, *, replicas: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, num_partitions=partitions, replication_factor=replicas)])[name].result(WAIT_S)


def stored_values(bootstrap: str, partition: int) -> list[tuple[int, bytes]]:
    consumer = confluent_consumer(bootstrap)
    try:
        _, end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(TOPIC, partition), timeout=WAIT_S)
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, partition, 0)])
        return [(message.offset(), message.value()) for message in confluent_read(consumer, end)]
    finally:
        consumer.close()


def assert_stored(bootstrap: str, load: Load, *, idempotent: bool = True) -> None:
    """Ends the load and checks the log: it has all acknowledged records, and those of an idempotent producer once and
    in order."""
    load.finish()
    by_partition = [stored_values(bootstrap, partition) for partition in range(PARTITIONS)]
    stored = {(index, offset): value for index, found in enumerate(by_partition) for offset, value in found}
    acknowledged = {(index, offset): each[offset] for index, each in enumerate(load.acknowledged) for offset in each}
    Verdict(
        acknowledged=len(acknowledged),
        lost=missing(acknowledged, stored),
        duplicated=repeated(stored.values()) if idempotent else None,
        out_of_order=out_of_order(load.sent, stored) if idempotent else None,
    ).assert_clean()
    for found, sent in zip(by_partition, load.sent, strict=True):
        assert [offset for offset, _ in found] == list(range(len(found)))
        assert not idempotent or [value for _, value in found] == sent, "each once, in the order sent"


def verdict_on_a_prefix(bootstrap: str, load: Load) -> Verdict:
    """For an abandoned idempotent producer: each partition has a prefix of what was sent to it."""
    lost = 0
    for partition, acknowledged in enumerate(load.acknowledged):
        stored = [value for _, value in stored_values(bootstrap, partition)]
        assert stored == load.sent[partition][: len(stored)], "each once, in the order sent"
        lost += max(0, len(acknowledged) - len(stored))
    return Verdict(acknowledged=load.count, lost=lost, duplicated=0, out_of_order=0)
