"""Data that Apache Kafka writes for tests which show that Quire can read it: one function for each kind of log.

Records have explicit timestamps, days apart, so that segments roll where the scenario needs it and not by the clock.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from interop.apache_kafka import ApacheKafka
from quire.client.offsets import EARLIEST, LATEST
from quire.testing import WireConnection
from tests.wire.raw import list_offset

CODECS = ("gzip", "snappy", "lz4", "zstd")
WAIT_S = 60.0

DAY_MS = 86_400_000
START_MS = 1_767_225_600_000
"""The first of January 2026."""

KEEP = {"retention.ms": "-1", "segment.ms": str(DAY_MS // 2)}
"""One segment for each day, kept forever."""
COMPACT = KEEP | {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": str(10 * DAY_MS),
}


class Server(NamedTuple):
    """A running Apache Kafka that the scenario fills."""

    kafka: ApacheKafka
    address: str
    data_dir: Path


class Scenario(NamedTuple):
    name: str
    fill: Callable[[Server], list[object] | None]
    """May return objects that must live until the server ends, such as clients that would leave their group."""
    settings: Mapping[str, str] = {}
    killed: bool = False
    """Whether the server is killed with SIGKILL."""


def plain(server: Server) -> None:
    """Nulls, empty bytes and headers; three segments, the start moved into the second; an empty partition."""
    create(server, "plain", partitions=2, config=KEEP)
    producer = idempotent(server)
    for day in range(3):
        send(producer, "plain", day, ("a", f"one {day}"), (None, f"no key {day}"), ("b", None), ("", ""))
        send(producer, "plain", day, ("c", "headers"), headers=[("trace", b"\x01\xff"), ("none", None), ("empty", b"")])
    admin = AdminClient({"bootstrap.servers": server.address, "log_level": 0})
    topic_partition = TopicPartition("plain", 0, 7)
    admin.delete_records([topic_partition])[topic_partition].result(WAIT_S)


def codecs(server: Server) -> None:
    """A topic for each codec, written by the Java client: other implementations must be able to read its framing."""
    for codec in CODECS:
        create(server, codec)
        lines = "".join(f"number:{n}\tkey {n}\tvalue {n} {'again and ' * 8}again\n" for n in range(12))
        server.kafka.tool(
            "ConsoleProducer",
            *("--bootstrap-server", server.address, "--topic", codec, "--compression-codec", codec),
            *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
            text=lines,
        )


def expired(server: Server) -> None:
    """Retention has deleted the oldest segments of one log, and all records of another."""
    today = (time.time_ns() // 1_000_000 - START_MS) // DAY_MS
    config = {"segment.ms": str(DAY_MS // 2), "retention.ms": str(30 * DAY_MS)}
    for topic, days in (("headless", (0, 1, today)), ("gone", (0, 1))):
        create(server, topic, config=config)
        producer = idempotent(server)
        for day in days:
            send(producer, topic, day, ("a", f"day {day}"), ("b", f"day {day}"))
    wait_until(lambda: offset_of(server, "headless", EARLIEST) == 4, "the head of one log is gone")
    wait_until(lambda: offset_of(server, "gone", EARLIEST) == 4, "all of the other log is gone")


def compacted(server: Server) -> None:
    """Keys overwritten and deleted in several segments, cleaned twice."""
    create(server, "compacted", config=COMPACT)
    producer = idempotent(server)
    send(producer, "compacted", 0, ("a", "1"), ("b", "1"), ("c", "1"), ("d", "1"))
    send(producer, "compacted", 1, ("a", "2"), ("b", None), ("e", "2"))
    send(producer, "compacted", 2, ("c", "3"), ("e", None), ("f", "3"))
    wait_until(lambda: cleaned(server, "compacted", 7), "the first two segments are cleaned")
    send(producer, "compacted", 3, ("a", "4"), ("g", "4"))
    send(producer, "compacted", 4, ("g", "5"), ("h", None))
    wait_until(lambda: cleaned(server, "compacted", 12), "the first four segments are cleaned")


def squeezed(server: Server) -> None:
    """Compressed batches from which the cleaner removed some records, so that it compressed the rest again."""
    for codec in CODECS:
        create(server, codec, config=COMPACT)
        producer = idempotent(server, codec)
        for day in range(3):
            send(producer, codec, day, *((f"{key}", f"day {day} " * 10) for key in range(day, 10, day + 1)))
    wait_until(lambda: all(cleaned(server, codec, 15) for codec in CODECS), "all are cleaned")


def transactional(server: Server) -> None:
    """Committed, aborted and open transactions among each other, with offsets of a group in one of them."""
    create(server, "ledger", config=KEEP)
    first, second, open_one = (transaction_producer(server, name) for name in ("first", "second", "open"))
    first.begin_transaction()
    send(first, "ledger", 0, ("a", "committed"), ("b", "committed"))
    first.commit_transaction()
    second.begin_transaction()
    send(second, "ledger", 0, ("c", "aborted later"))
    first.begin_transaction()
    send(first, "ledger", 0, ("a", "aborted"), ("b", "aborted"))
    first.abort_transaction()
    send(idempotent(server), "ledger", 1, ("d", "outside"))
    send(second, "ledger", 1, ("c", "aborted later"))
    second.abort_transaction()
    first.begin_transaction()
    send(first, "ledger", 1, ("a", "committed with offsets"))
    readers = Consumer({"bootstrap.servers": server.address, "group.id": "readers", "log_level": 0})
    first.send_offsets_to_transaction([TopicPartition("ledger", 0, 3)], readers.consumer_group_metadata(), WAIT_S)
    first.commit_transaction()
    readers.commit(offsets=[TopicPartition("ledger", 0, 4)], asynchronous=False)
    readers.close()
    open_one.begin_transaction()
    send(open_one, "ledger", 2, ("e", "open"))
    wait_until(lambda: offset_of(server, "ledger", LATEST) == 13, "all transactions but one have their markers")


def unclean(server: Server) -> None:
    """A killed server: indexes at full size, old checkpoints, no clean-shutdown mark; one aborted transaction."""
    create(server, "unclean", config=KEEP)
    producer = idempotent(server)
    for day in range(2):
        send(producer, "unclean", day, ("a", f"{day}"), ("b", f"{day}"))
    aborting = transaction_producer(server, "aborting")
    aborting.begin_transaction()
    send(aborting, "unclean", 1, ("c", "aborted"))
    aborting.abort_transaction()
    wait_until(lambda: offset_of(server, "unclean", LATEST) == 6, "the transaction has its marker")
    send(producer, "unclean", 1, ("d", "last"))


def coordinated(server: Server) -> list[object]:
    """Groups of both protocols, with members and without, offsets of all kinds, and transactions in every state."""
    create(server, "orders", partitions=2)
    create(server, "shipments")
    staying: list[object] = []
    for protocol in ("classic", "consumer"):
        for consumer in members(server, f"{protocol}-left", protocol, None):
            consumer.close()
        staying += members(server, f"{protocol}-staying", protocol, "first", "second")
    alone = Consumer({"bootstrap.servers": server.address, "group.id": "alone", "log_level": 0})
    for offset in (3, 5):
        topic_partition = TopicPartition("orders", 0, offset, metadata=f"at {offset}")
        alone.commit(offsets=[topic_partition, TopicPartition("shipments", 0, 10 * offset)], asynchronous=False)
    idle, done, undone, under_way = (
        transaction_producer(server, name) for name in ("idle", "done", "undone", "under way")
    )
    for producer, partition in ((done, 1), (undone, 1), (under_way, 0)):
        producer.begin_transaction()
        send(producer, "orders", 0, ("a", "value"))
        topic_partition = TopicPartition("orders", partition, 7)
        producer.send_offsets_to_transaction([topic_partition], alone.consumer_group_metadata(), WAIT_S)
    done.commit_transaction()
    undone.abort_transaction()
    return [*staying, alone, idle, under_way]


def members(server: Server, group: str, protocol: str, *instances: str | None) -> list[Any]:
    """Members of a group, static if they have a name, that have divided all partitions among themselves."""
    static = [{} if name is None else {"group.instance.id": name} for name in instances]
    consumers = [
        Consumer(
            {
                "bootstrap.servers": server.address,
                "client.id": "reader",
                "group.id": group,
                "group.protocol": protocol,
                "enable.auto.commit": False,
                "log_level": 0,
                **name,
            }
        )
        for name in static
    ]
    for consumer in consumers:
        consumer.subscribe(["orders", "shipments"])

    def divided() -> bool:
        for consumer in consumers:
            consumer.poll(0.1)
        held = [
            (topic_partition.topic, topic_partition.partition)
            for consumer in consumers
            for topic_partition in consumer.assignment()
        ]
        return len(held) == len(set(held)) == 3 and all(consumer.assignment() for consumer in consumers)

    wait_until(divided, f"{group} has divided its partitions")
    return consumers


SCENARIOS = [
    Scenario("plain", plain),
    Scenario("codecs", codecs),
    Scenario("expired", expired, {"log.retention.check.interval.ms": "100"}),
    Scenario("compacted", compacted, {"log.cleaner.backoff.ms": "100"}),
    Scenario("squeezed", squeezed, {"log.cleaner.backoff.ms": "100"}),
    Scenario("transactional", transactional),
    Scenario("unclean", unclean, killed=True),
    Scenario("coordinated", coordinated, {"group.initial.rebalance.delay.ms": "500"}, killed=True),
]


def create(server: Server, topic: str, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
    admin = AdminClient({"bootstrap.servers": server.address, "log_level": 0})
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
    admin.create_topics([new])[topic].result(WAIT_S)


def idempotent(server: Server, codec: str = "none") -> Any:
    return Producer(
        {
            "bootstrap.servers": server.address,
            "enable.idempotence": True,
            "compression.type": codec,
            "linger.ms": 50,
            "log_level": 0,
        }
    )


def transaction_producer(server: Server, name: str) -> Any:
    producer = Producer({"bootstrap.servers": server.address, "transactional.id": name, "log_level": 0})
    producer.init_transactions(WAIT_S)
    return producer


def send(
    producer: Any,
    topic: str,
    day: int,
    *records: tuple[str | None, str | None],
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> None:
    """One batch to partition 0."""
    for at, (key, value) in enumerate(records):
        timestamp = START_MS + day * DAY_MS + at
        producer.produce(topic, value, key, partition=0, timestamp=timestamp, headers=list(headers))
    assert producer.flush(WAIT_S) == 0


def offset_of(server: Server, topic: str, at: int) -> int:
    with WireConnection(server.address) as connection:
        return list_offset(connection, topic, at).offset


def cleaned(server: Server, topic: str, offset: int) -> bool:
    """Whether the cleaner has reached `offset`, according to its checkpoint."""
    path = server.data_dir / "cleaner-offset-checkpoint"
    return path.exists() and f"{topic} 0 {offset}" in path.read_text().splitlines()


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {WAIT_S:g} s: {what}"
        time.sleep(0.1)
