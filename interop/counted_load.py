"""A load whose every record is counted: what was acknowledged, what a group has read, how each transaction ended.

An idempotent producer, a producer of transactions that commit offsets too, and a group that commits what it has read
run in threads until the load is stopped. `judge` then reads both topics, and compares.
"""

import contextlib
import threading
import time
from collections import Counter
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

ORDERS, LEDGER = "orders", "ledger"
PARTITIONS = 6
READERS, LEDGER_GROUP = "readers", "ledger-position"
WAIT_S = 90.0
_PAUSE_S = 0.004
"""Between two records: the machine also runs up to four Java processes."""
_ABORT_EVERY = 4
_OFFSETS_WAIT_S = 5.0
"""librdkafka waits this long for a group's coordinator that it knows and cannot reach, before it looks for another."""


_TEMPORARY = {
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._WAIT_COORD,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REQUEST_TIMED_OUT,
}


class Load:
    def __init__(self, bootstrap_servers: str, *, transactions: bool = True) -> None:
        self.acknowledged: dict[int, tuple[int, int]] = {}
        """Number -> partition and offset."""
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self.unknown: set[int] = set()
        """Transactions of which the producer was not told how they ended."""
        self.read: Counter[tuple[int, int]] = Counter()
        """Partition and offset -> how often the group has read the record."""
        self.group_position: dict[int, int] = {}
        """What the group has committed."""
        self.failures: list[str] = []
        self.bootstrap_servers = bootstrap_servers
        self._sent = 0
        self._ends = threading.Event()
        self._all_written = threading.Event()
        self._has_transactions = transactions
        writers = [self._write, *([self._transact] if transactions else [])]
        self._writers = [self._thread(each) for each in writers]
        self._reader = self._thread(self._follow)

    def start(self) -> None:
        for thread in (*self._writers, self._reader):
            thread.start()

    def stop(self) -> None:
        """Returns when everything that was sent is acknowledged, and read by the group."""
        self._ends.set()
        for thread in self._writers:
            thread.join()
        self._all_written.set()
        self._reader.join()

    def check(self) -> None:
        assert not self.failures, self.failures

    def wait_for_more(self, records: int = 200, transactions: int = 3) -> None:
        """Waits until this many more of both are acknowledged."""
        acknowledged, ended = len(self.acknowledged) + records, len(self.committed) + transactions
        deadline = time.monotonic() + WAIT_S
        while len(self.acknowledged) < acknowledged or len(self.committed) < ended:
            self.check()
            assert time.monotonic() < deadline, "the load makes no progress"
            time.sleep(0.02)

    def _thread(self, work: Any) -> threading.Thread:
        return threading.Thread(target=self._guarded, args=(work,), daemon=True)

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except Exception as error:
            self.failures.append(f"{work.__name__}: {error!r}")

    # --- The producer

    def _write(self) -> None:
        settings = {"acks": "all", "enable.idempotence": True, "compression.type": "lz4", "linger.ms": 5}
        producer = Producer(self._client(settings))

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                self.acknowledged[int(message.value())] = (message.partition(), message.offset())
            else:
                self.failures.append(f"record {message.value()} was not written: {error}")

        while not self._ends.is_set():
            value = b"%d" % self._sent
            producer.produce(ORDERS, value, value, partition=self._sent % PARTITIONS, on_delivery=delivered)
            self._sent += 1
            producer.poll(_PAUSE_S)
        assert producer.flush(WAIT_S) == 0, "not everything was acknowledged"

    # --- The transactions

    def _transact(self) -> None:
        number = 0
        while not self._ends.is_set():
            producer = Producer(self._client({"transactional.id": "ledger", "transaction.timeout.ms": 60_000}))
            _again(partial(producer.init_transactions, WAIT_S))
            with contextlib.suppress(_BrokenProducerError):
                while not self._ends.is_set():
                    number += 1
                    self._transaction(producer, number)

    def _transaction(self, producer: Any, number: int) -> None:
        """One record in every partition, and `number` as the group's offset in each."""
        try:
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.produce(LEDGER, b"%d" % number, partition=partition)
            group = self._group()
            offsets = [TopicPartition(LEDGER, partition, number) for partition in range(PARTITIONS)]
            _again(lambda: producer.send_offsets_to_transaction(offsets, group, _OFFSETS_WAIT_S))
            if number % _ABORT_EVERY:
                _again(lambda: producer.commit_transaction(WAIT_S))
                self.committed.add(number)
            else:
                producer.flush(WAIT_S)
                _again(lambda: producer.abort_transaction(WAIT_S))
                self.aborted.add(number)
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if reason.txn_requires_abort():
                with contextlib.suppress(KafkaException):
                    _again(lambda: producer.abort_transaction(WAIT_S))
                    self.aborted.add(number)
                    return
            self.unknown.add(number)
            raise _BrokenProducerError from error

    def _group(self) -> Any:
        consumer = Consumer(self._client({"group.id": LEDGER_GROUP}))
        try:
            return consumer.consumer_group_metadata()
        finally:
            consumer.close()

    # --- The group

    def _follow(self) -> None:
        consumer = self._consumer(READERS, **{"auto.offset.reset": "error"})
        self.group_position = dict.fromkeys(range(PARTITIONS), 0)
        first = [TopicPartition(ORDERS, partition, 0) for partition in range(PARTITIONS)]
        _again(lambda: consumer.commit(offsets=first, asynchronous=False))
        consumer.subscribe([ORDERS], on_assign=self._check_position)
        deadline = None
        while True:
            messages = [each for each in consumer.consume(200, 0.2) if each.error() is None]
            for message in messages:
                self.read[message.partition(), message.offset()] += 1
            if messages:
                ends = {message.partition(): message.offset() + 1 for message in messages}
                with contextlib.suppress(KafkaException):
                    offsets = [TopicPartition(ORDERS, *each) for each in ends.items()]
                    consumer.commit(offsets=offsets, asynchronous=False)
                    self.group_position |= ends
            if self._all_written.is_set():
                deadline = deadline or time.monotonic() + WAIT_S
                if set(self.read) >= set(self.acknowledged.values()) or time.monotonic() > deadline:
                    break
        consumer.close()

    def _check_position(self, consumer: Any, partitions: list[Any]) -> None:
        """A commit that timed out may have been written, so the stored offset may be ahead."""
        for found in _again(lambda: consumer.committed(partitions, timeout=WAIT_S)):
            if found.offset < self.group_position[found.partition]:
                self.failures.append(
                    f"the group's offset in {found} is smaller than {self.group_position[found.partition]}"
                )

    def _consumer(self, group: str, **settings: str) -> Any:
        chosen = {"group.id": group, "enable.auto.commit": False, "check.crcs": True} | settings
        return Consumer(self._client(chosen))

    def _client(self, settings: dict[str, Any]) -> dict[str, Any]:
        """A request to a broker that is paused is given up after a few seconds instead of a minute."""
        chosen = {"bootstrap.servers": self.bootstrap_servers, "log_level": 0, "socket.timeout.ms": 6_000} | settings
        is_producer = "group.id" not in settings
        return chosen | ({"request.timeout.ms": 5_000} if is_producer else {})

    # --- The end

    def judge(self) -> str:
        """One line of what was found; an assertion fails if anything is lost, doubled, reordered or half there."""
        self.check()
        orders = self._stored(ORDERS, READERS)
        assert self._sent == len(self.acknowledged) > 0
        for number, (partition, offset) in self.acknowledged.items():
            assert orders[partition].get(offset) == number, f"record {number} is not at {partition}@{offset}"
        for partition, records in orders.items():
            numbers = [records[offset] for offset in sorted(records)]
            assert numbers == sorted(set(numbers)), f"partition {partition} has doubled or reordered records"
        assert sum(map(len, orders.values())) == self._sent
        assert set(self.read) == set(self.acknowledged.values()), "the group has not read exactly what was written"
        ends = {partition: max(records) + 1 for partition, records in orders.items()}
        assert self._offsets(READERS, ORDERS) == ends

        if self._has_transactions:
            self._judge_transactions()
        reread = sum(self.read.values()) - len(self.read)
        return (
            f"acknowledged {len(self.acknowledged)} lost 0 doubled 0 reread {reread}; "
            f"transactions committed {len(self.committed)} aborted {len(self.aborted)} unknown {len(self.unknown)}"
        )

    def _judge_transactions(self) -> None:
        ledger = self._stored(LEDGER, LEDGER_GROUP)
        seen = [sorted(records.values()) for records in ledger.values()]
        assert all(each == seen[0] for each in seen), "a transaction is not whole"
        assert len(seen[0]) == len(set(seen[0])), "a transaction is there twice"
        assert self.committed <= set(seen[0]) <= self.committed | self.unknown
        assert len(self.committed) > 0
        assert self._offsets(LEDGER_GROUP, LEDGER) == dict.fromkeys(range(PARTITIONS), max(seen[0]))

    def _offsets(self, group: str, topic: str) -> dict[int, int]:
        consumer = self._consumer(group)
        try:
            asked = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
            return {found.partition: found.offset for found in consumer.committed(asked, timeout=WAIT_S)}
        finally:
            consumer.close()

    def _stored(self, topic: str, group: str) -> dict[int, dict[int, int]]:
        """Partition -> offset -> number, of all committed records."""
        consumer = self._consumer(group, **{"isolation.level": "read_committed", "enable.partition.eof": "true"})
        found: dict[int, dict[int, int]] = {partition: {} for partition in range(PARTITIONS)}
        unread = set(found)
        try:
            consumer.assign([TopicPartition(topic, partition, 0) for partition in found])
            deadline = time.monotonic() + WAIT_S
            while unread:
                assert time.monotonic() < deadline, f"partitions {unread} of {topic} could not be read to their ends"
                for message in consumer.consume(1000, 0.5):
                    if message.error() is None:
                        found[message.partition()][message.offset()] = int(message.value())
                    elif message.error().code() == KafkaError._PARTITION_EOF:
                        unread.discard(message.partition())
        finally:
            consumer.close()
        return found


class _BrokenProducerError(Exception):
    """The producer must be replaced by one with the same transactional id."""


def _again(call: Any) -> Any:
    """Repeats a call that says that it may be repeated, while nodes start and stop."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return call()
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if not _is_temporary(reason) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _is_temporary(reason: Any) -> bool:
    if reason.fatal() or reason.txn_requires_abort():
        return False
    return bool(reason.retriable()) or reason.code() in _TEMPORARY
