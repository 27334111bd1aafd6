"""Clients of a replicated topic while its brokers fail: they write and read all the time, and remember everything.

An idempotent producer with acks=all, a transactional producer, and a reader of committed records that resumes from
where it was. `verdict.py` compares their results with the contents of the topic at the end.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Self

import confluent_kafka
from confluent_kafka import KafkaException, TopicPartition

PARTITIONS = 4
WAIT_S = 90.0
"""The time limit for everything that a healthy cluster must do. A busy machine may need most of it."""
STEP_S = 5.0
TRANSACTION_S = 20.0
"""For the end of a transaction: a coordinator that is isolated has its clients wait until the network heals."""
INIT_S = 15.0
TURN_S = 0.02
UNDER_WAY = 100
"""Of each partition: one that takes no records must not hold up the others."""
EVERY_THIRD_IS_ABORTED = 3
PER_TRANSACTION = 3
TRANSACTION_MS = 180_000
"""Longer than any fault: a coordinator that aborts a transaction by itself fences its producer."""

CLIENT: dict[str, Any] = {
    "broker.address.family": "v4",
    "socket.timeout.ms": 4000,
    "socket.connection.setup.timeout.ms": 4000,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "topic.metadata.refresh.interval.ms": 1000,
    "log_level": 0,
}
"""Settings with which clients reconnect soon after their brokers have restarted."""

PartitionOffset = tuple[int, int]
"""Partition and offset."""


def client_settings(bootstrap: str, **settings: Any) -> dict[str, Any]:
    return CLIENT | {"bootstrap.servers": bootstrap} | settings


class Client:
    """A thread that calls `turn` until it is stopped. The test fails with what `turn` raises."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.changed = threading.Condition()
        self.failure: BaseException | None = None
        self.stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stopping = True
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive(), f"{self.name} does not end"
        if self.failure is not None:
            raise self.failure

    def turn(self) -> None:
        raise NotImplementedError

    def settle(self) -> None:
        """Finishes the current turn."""

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        with self.changed:
            fulfilled = self.changed.wait_for(lambda: condition() or self.failure is not None, WAIT_S)
        if self.failure is not None:
            raise self.failure
        assert fulfilled, f"{self.name}: {what} after {WAIT_S:g} s"

    def _run(self) -> None:
        try:
            while not self.stopping:
                self.turn()
            self.settle()
        except BaseException as error:  # any exception fails the test
            with self.changed:
                self.failure = error
                self.changed.notify_all()


class Writer(Client):
    """Sends numbered records to all partitions, one after another, with acks=all, idempotent unless told otherwise."""

    def __init__(self, bootstrap: str, topic: str, *, name: str = "writer", **settings: Any) -> None:
        super().__init__(name)
        self._topic = topic
        self._producer = confluent_kafka.Producer(
            client_settings(
                bootstrap,
                **({"enable.idempotence": True, "linger.ms": 2, "message.timeout.ms": 300_000} | settings),
            )
        )
        self.sent: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.acknowledged: dict[PartitionOffset, bytes] = {}
        self.acknowledged_somewhere: list[bytes] = []
        """The client knows that these are stored, but not where: the answer to its first attempt was lost, and the
        leader that it asked again remembers only the last batches of each producer."""
        self.last_acknowledged = [-1] * PARTITIONS
        """The offset of each partition's last acknowledgement, which an unclean election moves back."""
        self.refused: list[tuple[bytes, Any]] = []
        self.longest_gap_s = 0.0
        self._number = 0
        self._under_way = [0] * PARTITIONS
        self._acknowledged_number = [-1] * PARTITIONS
        self._last_s = time.monotonic()

    def turn(self) -> None:
        for partition in range(PARTITIONS):
            if self._under_way[partition] < UNDER_WAY:
                value = b"%s %08d" % (self.name.encode(), self._number)
                self._producer.produce(self._topic, value, partition=partition, on_delivery=self._delivered)
                self.sent[partition].append(value)
                self._under_way[partition] += 1
                self._number += 1
        ends_s = time.monotonic() + TURN_S
        while (left_s := ends_s - time.monotonic()) > 0:
            self._producer.poll(left_s)

    def settle(self) -> None:
        assert self._producer.flush(WAIT_S) == 0, f"{self.name}: records without an answer"

    def wait_for_acks(self, partitions: Iterable[int] = range(PARTITIONS)) -> None:
        """Waits until these partitions have acknowledged records that are sent after this call."""
        number = self._number
        wanted = list(partitions)
        self.wait_for(
            lambda: all(self._acknowledged_number[each] >= number for each in wanted),
            f"not all of partitions {wanted} acknowledge anything",
        )

    def _delivered(self, error: Any, message: Any) -> None:
        now_s = time.monotonic()
        partition = message.partition()
        with self.changed:
            self._under_way[partition] -= 1
            if error is not None:
                self.refused.append((message.value(), error))
            else:
                offset = message.offset()
                if offset is None:
                    self.acknowledged_somewhere.append(message.value())
                else:
                    self.acknowledged[partition, offset] = message.value()
                    self.last_acknowledged[partition] = offset
                self._acknowledged_number[partition] = int(message.value().rpartition(b" ")[2])
                self.longest_gap_s = max(self.longest_gap_s, now_s - self._last_s)
                self._last_s = now_s
            self.changed.notify_all()


class TransactionalWriter(Client):
    """Transactions of a few records in several partitions, of which every third is aborted."""

    def __init__(self, bootstrap: str, topic: str, *, name: str = "transactions") -> None:
        super().__init__(name)
        self._topic = topic
        self.transactional_id = f"{name} of {topic}"
        self._settings = client_settings(
            bootstrap, **{"transactional.id": self.transactional_id, "transaction.timeout.ms": TRANSACTION_MS}
        )
        self._producer: Any = None
        self._numbers = itertools.count()
        self.committed: list[list[bytes]] = []
        self.aborted: list[list[bytes]] = []
        self.unknown: list[list[bytes]] = []
        """The commit got no answer: all of its records are there, or none."""

    def turn(self) -> None:
        if self._producer is None:
            self._begin_again()
            return
        number = next(self._numbers)
        values = [b"%s %08d %d" % (self.name.encode(), number, part) for part in range(PER_TRANSACTION)]
        outcome = self.unknown
        try:
            self._producer.begin_transaction()
            outcome = self.aborted
            for part, value in enumerate(values):
                self._producer.produce(self._topic, value, partition=(number + part) % PARTITIONS)
            if number % EVERY_THIRD_IS_ABORTED == EVERY_THIRD_IS_ABORTED - 1:
                self._producer.flush(STEP_S)  # so that there is something to abort
                _repeat(lambda: self._producer.abort_transaction(STEP_S), TRANSACTION_S)
            else:
                outcome = self.unknown
                _repeat(lambda: self._producer.commit_transaction(STEP_S), TRANSACTION_S)
                outcome = self.committed
        except KafkaException as error:
            outcome = self._recover(error, outcome)
        with self.changed:
            outcome.append(values)
            self.changed.notify_all()

    def settle(self) -> None:
        if self._producer is None:
            self._begin_again()  # this also ends an open transaction

    def wait_for_commits(self, count: int = 2) -> None:
        """Waits until this many transactions are committed that begin after this call."""
        wanted = len(self.committed) + 1 + count
        self.wait_for(lambda: len(self.committed) >= wanted, "no transaction is committed")

    def _recover(self, error: KafkaException, outcome: list[list[bytes]]) -> list[list[bytes]]:
        """The result of the transaction after a failure."""
        if error.args[0].txn_requires_abort():
            with suppress(KafkaException):
                _repeat(lambda: self._producer.abort_transaction(STEP_S), TRANSACTION_S)
                return self.aborted
        self._producer = None  # the next producer with this id aborts the open transaction
        return outcome

    def _begin_again(self) -> None:
        """Each attempt looks for the coordinator: an isolated node may say that it is still that."""

        def begin() -> None:
            producer = confluent_kafka.Producer(self._settings)
            producer.init_transactions(INIT_S)
            self._producer = producer

        _repeat(begin, WAIT_S)


def _repeat(call: Callable[[], None], patience_s: float) -> None:
    """Retries until it succeeds, or fails with an error that a retry does not change."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            call()
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise


class Reader(Client):
    """Reads committed records in order. An offset that no longer exists is a failure."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__("reader")
        self._consumer = confluent_kafka.Consumer(
            client_settings(
                bootstrap,
                **{
                    "group.id": f"reader of {topic}",
                    "enable.auto.commit": False,
                    "auto.offset.reset": "error",
                    "isolation.level": "read_committed",
                    "fetch.wait.max.ms": 100,
                },
            )
        )
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        self.seen: dict[PartitionOffset, bytes] = {}
        self._next = [0] * PARTITIONS

    def turn(self) -> None:
        for message in self._consumer.consume(500, TURN_S):
            if message.error() is not None:
                assert message.error().retriable() or message.error().code() < 0, message.error()
                continue
            partition, offset = message.partition(), message.offset()
            assert offset >= self._next[partition], f"partition {partition}: {offset} after {self._next[partition] - 1}"
            self._next[partition] = offset + 1
            self.seen[partition, offset] = message.value()

    def settle(self) -> None:
        self._consumer.close()


class ReplicatedLoad:
    """A writer, a transactional writer and a reader of one existing topic."""

    def __init__(self, bootstrap: str, topic: str, *, transactions: bool = True) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.writer = Writer(bootstrap, topic)
        self.transactions = TransactionalWriter(bootstrap, topic) if transactions else None
        self.reader = Reader(bootstrap, topic)

    def __enter__(self) -> Self:
        for client in self._clients:
            client.start()
        self.wait_for_progress()
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.stopping = True

    def wait_for_progress(self) -> None:
        """Waits until every partition has acknowledged new records, and a later transaction is committed."""
        self.writer.wait_for_acks()
        if self.transactions is not None:
            self.transactions.wait_for_commits()

    def finish(self) -> None:
        for client in self._clients:
            client.stop()

    @property
    def _clients(self) -> list[Client]:
        clients: list[Client | None] = [self.writer, self.transactions, self.reader]
        return [each for each in clients if each is not None]
