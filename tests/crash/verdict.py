"""Compares the results that clients got with the contents of the topic and of the disks of all replicas.

Every count but the first one must be 0. `replicas_differ` says whether the replicas are equal byte for byte.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.crash.real_cluster import wait_while
from tests.crash.replicated_load import PARTITIONS, PartitionOffset, ReplicatedLoad, Writer, client_settings

ASK_S = 5.0
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A count is None if it has no meaning in a test: a producer that is not idempotent may write a record twice."""

    acknowledged: int
    lost: int
    """Acknowledged records, or records of a committed transaction, that are not at their acknowledged offset."""
    duplicated: int | None = None
    out_of_order: int | None = None
    aborted_read: int | None = None
    """Records of an aborted transaction, or of one that is visible only in part."""
    vanished: int | None = None
    """Records that the reader has read and that are missing later."""
    longest_gap_s: float | None = None

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.duplicated or self.out_of_order or self.aborted_read or self.vanished)

    def __str__(self) -> str:
        counts = {
            "acknowledged": self.acknowledged,
            "lost": self.lost,
            "duplicated": self.duplicated,
            "out of order": self.out_of_order,
            "aborted read": self.aborted_read,
            "vanished": self.vanished,
        }
        said = ", ".join(f"{name} {count}" for name, count in counts.items() if count is not None)
        gap_s = self.longest_gap_s
        return said if gap_s is None else f"{said}; longest time without an acknowledgement {gap_s:.2f} s"

    def assert_clean(self) -> None:
        print(self)
        assert self.acknowledged, "nothing was acknowledged, so nothing was tested"
        assert self.is_clean, self


def assert_clean(load: ReplicatedLoad) -> Verdict:
    """Ends the load and judges it; every partition must have a leader."""
    verdict = judge(load)
    verdict.assert_clean()
    return verdict


def judge(load: ReplicatedLoad) -> Verdict:
    load.finish()
    stored = read_settled(load.bootstrap, load.topic)
    transactions = load.transactions
    committed = transactions.committed if transactions is not None else []
    values = Counter(stored.values())
    lost = missing(load.writer.acknowledged, stored)
    lost += sum(value not in values for value in load.writer.acknowledged_somewhere)
    lost += sum(value not in values for transaction in committed for value in transaction)
    aborted_read = 0
    if transactions is not None:
        aborted_read = sum(value in values for transaction in transactions.aborted for value in transaction)
        aborted_read += sum(_is_torn(transaction, values) for transaction in transactions.unknown)
    return Verdict(
        acknowledged=len(load.writer.acknowledged) + len(load.writer.acknowledged_somewhere) + sum(map(len, committed)),
        lost=lost,
        duplicated=repeated(stored.values()),
        out_of_order=out_of_order(load.writer.sent, stored),
        aborted_read=aborted_read,
        vanished=missing(load.reader.seen, stored),
        longest_gap_s=load.writer.longest_gap_s,
    )


def judge_writer(writer: Writer, stored: Mapping[PartitionOffset, bytes]) -> Verdict:
    """Of an idempotent writer that has stopped."""
    values = set(stored.values())
    return Verdict(
        acknowledged=len(writer.acknowledged) + len(writer.acknowledged_somewhere),
        lost=missing(writer.acknowledged, stored) + sum(value not in values for value in writer.acknowledged_somewhere),
        duplicated=repeated(stored.values()),
        out_of_order=out_of_order(writer.sent, stored),
        longest_gap_s=writer.longest_gap_s,
    )


def missing(told: Mapping[PartitionOffset, bytes], stored: Mapping[PartitionOffset, bytes]) -> int:
    return sum(stored.get(position) != value for position, value in told.items())


def repeated(values: Iterable[bytes]) -> int:
    """How many values occur again; the first occurrence of each does not count."""
    return sum(count - 1 for count in Counter(values).values())


def _is_torn(transaction: Iterable[bytes], values: Mapping[bytes, int]) -> bool:
    return len({value in values for value in transaction}) == 2


def out_of_order(sent: Sequence[Sequence[bytes]], stored: Mapping[PartitionOffset, bytes]) -> int:
    """How many records are not in the order in which they were `sent` to each partition."""
    wrong = 0
    for partition, values in enumerate(sent):
        order = {value: number for number, value in enumerate(values)}
        found = [order[value] for (index, _), value in sorted(stored.items()) if index == partition and value in order]
        wrong += sum(later < earlier for earlier, later in itertools.pairwise(found))
    return wrong


# --- The contents of the topic


def read_settled(bootstrap: str, topic: str) -> dict[PartitionOffset, bytes]:
    """Every committed record, as soon as no transaction is open."""

    def open_transactions() -> str:
        stable, end = ends(bootstrap, topic, COMMITTED), ends(bootstrap, topic, UNCOMMITTED)
        return "" if stable == end else f"transactions are open: stable up to {stable}, and {end} is the end"

    wait_while(open_transactions)
    return read_all(bootstrap, topic, COMMITTED)


def ends(bootstrap: str, topic: str, isolation: str) -> list[int]:
    """Of all partitions, as soon as each of them has a leader that answers."""
    consumer = _consumer(bootstrap, isolation)
    found: list[int] = []

    def ask() -> str:
        partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        try:
            found[:] = [consumer.get_watermark_offsets(each, timeout=ASK_S)[1] for each in partitions]
        except KafkaException as error:
            return f"not all ends of {topic} are known: {error}"
        return ""

    try:
        wait_while(ask)
    finally:
        consumer.close()
    return found


def read_all(bootstrap: str, topic: str, isolation: str = COMMITTED) -> dict[PartitionOffset, bytes]:
    """Every record up to the end of each partition."""
    consumer = _consumer(bootstrap, isolation)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found: dict[PartitionOffset, bytes] = {}
    at_end: set[int] = set()

    def take_more() -> str:
        for message in consumer.consume(1000, 0.1):
            error = message.error()
            if error is None:
                found[message.partition(), message.offset()] = message.value()
            elif error.code() == KafkaError._PARTITION_EOF:
                at_end.add(message.partition())
        return "" if len(at_end) == PARTITIONS else f"the ends of {PARTITIONS - len(at_end)} partitions are not reached"

    try:
        wait_while(take_more)
    finally:
        consumer.close()
    return found


def _consumer(bootstrap: str, isolation: str) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        client_settings(
            bootstrap,
            **{
                "group.id": "verdict",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 100,
            },
        )
    )


# --- The contents of the disks


def replicas_differ(folders: Iterable[Path], topic: str, partitions: int = PARTITIONS) -> str:
    """The first partition whose replicas are not equal, with their sizes. The nodes must not run."""
    folders = list(folders)
    for partition in range(partitions):
        logs = [_log_bytes(folder / f"{topic}-{partition}") for folder in folders]
        if any(each != logs[0] for each in logs):
            sizes = {folder.name: len(log) for folder, log in zip(folders, logs, strict=True)}
            return f"the replicas of partition {partition} differ; bytes: {sizes}"
    return ""


def _log_bytes(folder: Path) -> bytes:
    assert folder.is_dir(), f"{folder} is not there"
    return b"".join(segment.read_bytes() for segment in sorted(folder.glob("*.log")))
