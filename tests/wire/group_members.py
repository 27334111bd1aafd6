"""Members of a consumer group, through each real client, polling in threads of their own as applications do.

    with member(bootstrap, group, [topic]) as first, member(bootstrap, group, [topic]) as second:
        eventually(lambda: shared_out([first, second], topic, 4))

The state of a member can be read at any time: its current partitions in `assigned`, every rebalance callback in
`events`, every record in `received`. `do` runs a function on the client in its own thread, because some clients may not
be used from two threads.
"""

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, ClassVar, NamedTuple

import aiokafka
import confluent_kafka
import kafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AioRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AioSticky
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tests.wire.clients import WAIT_S, eventually

HEARTBEAT_MS = 100
SESSION_MS = 10_000
POLL_S = 0.02
KAFKA_PYTHON_POLL_MS = 200
"""Every poll waits for metadata and for the group from the beginning, so short polls make no progress."""

Partition = tuple[str, int]
"""A partition: its topic and number."""
Partitions = frozenset[Partition]


class Got(NamedTuple):
    topic: str
    partition: int
    offset: int
    value: bytes | None


class Owned(NamedTuple):
    """The time for which a member had a partition, according to its callbacks."""

    topic_partition: Partition
    start_s: float
    end_s: float


class GroupMember:
    """A subscribed consumer, and the thread that polls it."""

    def __init__(self, name: str) -> None:
        self.assigned: Partitions = frozenset()
        self.events: list[tuple[str, Partitions]] = []
        self.owned: list[Owned] = []
        """Partitions that were revoked with a callback. For partitions that were lost without one, the end is
        unknown."""
        self.received: list[Got] = []
        self.error: BaseException | None = None
        self._since_s: dict[Partition, float] = {}
        self._stopping = False
        self._tasks: queue.SimpleQueue[tuple[Callable[[Any], Any], Future[Any]]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leaves like the client: dynamic members send LeaveGroup, static ones do not."""
        self._stopping = True
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive(), "the client did not close in time"
        if self.error is not None:
            raise self.error

    def do(self, task: Callable[[Any], Any]) -> Any:
        """Calls `task(consumer)` between two polls; for aiokafka it may return an awaitable."""
        result: Future[Any] = Future()
        self._tasks.put((task, result))
        return result.result(WAIT_S)

    def values(self) -> list[bytes | None]:
        return [got.value for got in list(self.received)]

    def _run(self) -> None:
        try:
            self._consume()
        except BaseException as error:
            self.error = error

    def _consume(self) -> None:
        raise NotImplementedError

    def _happened(self, what: str, partitions: Iterable[Any]) -> None:
        changed, now_s = _as_tuples(partitions), time.monotonic()
        self.events.append((what, changed))
        for partition in changed:
            if what == "assigned":
                self._since_s[partition] = now_s
            elif (start_s := self._since_s.pop(partition, None)) is not None and what == "revoked":
                self.owned.append(Owned(partition, start_s, now_s))

    def _next_tasks(self) -> Iterator[tuple[Callable[[Any], Any], Future[Any]]]:
        while not self._tasks.empty():
            yield self._tasks.get()

    def _do_tasks(self, consumer: Any) -> None:
        for task, result in self._next_tasks():
            try:
                result.set_result(task(consumer))
            except BaseException as error:
                result.set_exception(error)


class ConfluentMember(GroupMember):
    def __init__(
        self, bootstrap: str, group: str, topics: Sequence[str], *, assignor: str | None = None, **settings: Any
    ) -> None:
        chosen: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
            "log_level": 0,
        }
        if settings.get("group.protocol") != "consumer":  # in this protocol the broker sets the timeouts
            chosen |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}
        if assignor is not None:
            chosen["partition.assignment.strategy"] = assignor
        self._settings = chosen | settings
        self._topics = list(topics)
        super().__init__("confluent-kafka")

    def _consume(self) -> None:
        consumer = confluent_kafka.Consumer(self._settings)
        try:
            consumer.subscribe(
                self._topics,
                on_assign=lambda _, partitions: self._happened("assigned", partitions),
                on_revoke=lambda _, partitions: self._happened("revoked", partitions),
                on_lost=lambda _, partitions: self._happened("lost", partitions),
            )
            while not self._stopping:
                self._do_tasks(consumer)
                message = consumer.poll(POLL_S)
                self.assigned = _as_tuples(consumer.assignment())
                if message is not None:
                    self._take(consumer, message)
        finally:
            consumer.close()
            self.assigned = frozenset()

    def _take(self, consumer: Any, message: Any) -> None:
        if message.error() is None:
            self.received.append(Got(message.topic(), message.partition(), message.offset(), message.value()))
        elif not message.error().retriable():
            raise confluent_kafka.KafkaException(message.error())


def _python_settings(bootstrap: str, group: str, assignor: Any | None) -> dict[str, Any]:
    """The settings of kafka-python and aiokafka, which have the same names."""
    settings: dict[str, Any] = {
        "bootstrap_servers": bootstrap,
        "group_id": group,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "fetch_max_wait_ms": 100,
        "session_timeout_ms": SESSION_MS,
        "heartbeat_interval_ms": HEARTBEAT_MS,
    }
    return settings if assignor is None else settings | {"partition_assignment_strategy": [assignor]}


def _subscribe(consumer: Any, topics: list[str], listener: Any) -> None:
    if topics[0].startswith("^"):
        consumer.subscribe(pattern=topics[0], listener=listener)
    else:
        consumer.subscribe(topics, listener=listener)


class _Listener:
    """Reports rebalances of either client library."""

    def __init__(self, happened: Callable[[str, Iterable[Any]], None]) -> None:
        self._happened = happened

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._happened("assigned", assigned)

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._happened("revoked", revoked)

    def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        self._happened("lost", lost)


class _KafkaPythonListener(_Listener, kafka.ConsumerRebalanceListener):  # type: ignore[misc]
    pass


class KafkaPythonMember(GroupMember):
    ASSIGNORS: ClassVar[dict[str, Any]] = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }

    def __init__(
        self, bootstrap: str, group: str, topics: Sequence[str], *, assignor: str | None = None, **settings: Any
    ) -> None:
        self._settings = _python_settings(bootstrap, group, assignor and self.ASSIGNORS[assignor]) | settings
        self._topics = list(topics)
        super().__init__("kafka-python")

    def _consume(self) -> None:
        consumer = kafka.KafkaConsumer(**self._settings)
        listener = _KafkaPythonListener(self._happened)
        try:
            _subscribe(consumer, self._topics, listener)
            while not self._stopping:
                self._do_tasks(consumer)
                for records in consumer.poll(timeout_ms=KAFKA_PYTHON_POLL_MS).values():
                    self.received += [Got(r.topic, r.partition, r.offset, r.value) for r in records]
                self.assigned = _as_tuples(consumer.assignment())
                # kafka-python 3.0 forgets a join that it began because topics changed, when a poll ends in its middle.
                if consumer._coordinator.rejoining:
                    consumer._coordinator.request_rejoin()
        finally:
            consumer.close()
            self.assigned = frozenset()


class _AiokafkaListener(_Listener, aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    pass


class AiokafkaMember(GroupMember):
    ASSIGNORS: ClassVar[dict[str, Any]] = {"range": AioRange, "roundrobin": AioRoundRobin, "sticky": AioSticky}

    def __init__(
        self, bootstrap: str, group: str, topics: Sequence[str], *, assignor: str | None = None, **settings: Any
    ) -> None:
        self._settings = _python_settings(bootstrap, group, assignor and self.ASSIGNORS[assignor]) | settings
        self._topics = list(topics)
        super().__init__("aiokafka")

    def _consume(self) -> None:
        asyncio.run(self._consume_async())

    async def _consume_async(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(**self._settings)
        listener = _AiokafkaListener(self._happened)
        await consumer.start()
        try:
            _subscribe(consumer, self._topics, listener)
            while not self._stopping:
                await self._do_awaitable_tasks(consumer)
                for records in (await consumer.getmany(timeout_ms=int(POLL_S * 1000))).values():
                    self.received += [Got(r.topic, r.partition, r.offset, r.value) for r in records]
                self.assigned = _as_tuples(consumer.assignment())
        finally:
            await consumer.stop()
            self.assigned = frozenset()

    async def _do_awaitable_tasks(self, consumer: Any) -> None:
        for task, result in self._next_tasks():
            try:
                answer = task(consumer)
                result.set_result(await answer if asyncio.iscoroutine(answer) else answer)
            except BaseException as error:
                result.set_exception(error)


MEMBERS: dict[str, type[GroupMember]] = {
    "confluent-kafka": ConfluentMember,
    "kafka-python": KafkaPythonMember,
    "aiokafka": AiokafkaMember,
}


@contextlib.contextmanager
def member(
    bootstrap: str, group: str, topics: Sequence[str], *, client: str = "confluent-kafka", **settings: Any
) -> Iterator[Any]:
    """A member that leaves at the end of the block. Apart from `assignor`, `settings` are those of the client."""
    made: Any = MEMBERS[client](bootstrap, group, topics, **settings)  # type: ignore[call-arg]
    try:
        yield made
    finally:
        made.close()


def shared_out(members: Sequence[GroupMember], topic: str, partitions: int) -> bool:
    """Whether each partition belongs to exactly one of the members, and the numbers of partitions are about equal."""
    owned = [partition for each in members for partition in each.assigned]
    sizes = [len(each.assigned) for each in members]
    return sorted(owned) == [(topic, number) for number in range(partitions)] and max(sizes) - min(sizes) <= 1


def wait_until_shared_out(members: Sequence[GroupMember], topic: str, partitions: int, wait_s: float = WAIT_S) -> None:
    def ready() -> bool:
        for each in members:
            if each.error is not None:
                raise each.error
        return shared_out(members, topic, partitions)

    try:
        eventually(ready, wait_s)
    except AssertionError:
        raise AssertionError(f"not shared out in time: {[(sorted(m.assigned), m.events) for m in members]}") from None


def _as_tuples(partitions: Iterable[Any]) -> Partitions:
    return frozenset((each.topic, each.partition) for each in partitions)
