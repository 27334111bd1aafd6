"""A producer's batch of records for one partition, and the result of its delivery."""

from collections.abc import Sequence
from typing import NamedTuple

from quire.client.offsets import TopicPartition
from quire.pending import Pending
from quire.protocol.records import Compression, Record, build_batch, seal_batch

BATCH_HEADER_BYTES = 61
# Lengths and deltas of a record as varints: never more than this, and rarely as much.
RECORD_OVERHEAD_BYTES = 24
HEADER_OVERHEAD_BYTES = 10
SEQUENCES = 1 << 31


class Identity(NamedTuple):
    """The identity of an idempotent producer, from InitProducerId."""

    producer_id: int
    epoch: int


class Delivery:
    """The result of a batch: `done` is None if all of its records are in the log, and the error if none is."""

    __slots__ = ("base_offset", "count", "done", "timestamp_ms", "topic_partition")

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.count = 0
        self.base_offset = -1
        self.timestamp_ms = -1
        self.done: Pending[Exception | None] = Pending()

    @property
    def error(self) -> Exception | None:
        return self.done.value if self.done.done else None


class Receipt:
    """One record of a delivery."""

    __slots__ = ("delivery", "index")

    def __init__(self, delivery: Delivery, index: int) -> None:
        self.delivery = delivery
        self.index = index

    @property
    def partition(self) -> int:
        return self.delivery.topic_partition.partition

    @property
    def delivered(self) -> bool:
        return self.delivery.done.done and self.delivery.done.value is None

    @property
    def offset(self) -> int:
        """The record's offset; -1 before it is delivered, and with acks=0."""
        base = self.delivery.base_offset
        return -1 if base < 0 else base + self.index


def estimate_bytes(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]] | None) -> int:
    """The largest possible size of a record in a batch that is not compressed."""
    size = RECORD_OVERHEAD_BYTES
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    if headers:
        for name, content in headers:
            size += HEADER_OVERHEAD_BYTES + 4 * len(name) + (0 if content is None else len(content))
    return size


class Batch:
    """Grows while it is open. Once it is encoded, all retries send the same bytes."""

    __slots__ = (
        "_encoded",
        "_plain",
        "_timestamp_ms",
        "deadline_ms",
        "delivery",
        "identity",
        "order",
        "records",
        "retried",
        "sequence",
        "size_bytes",
        "uncertain",
    )

    def __init__(self, topic_partition: TopicPartition, order: int, deadline_ms: float) -> None:
        self.delivery = Delivery(topic_partition)
        self.order = order
        self.deadline_ms = deadline_ms
        self.records: list[Record] = []
        self.size_bytes = BATCH_HEADER_BYTES
        self.identity: Identity | None = None
        self.sequence = -1
        self.retried = False
        self.uncertain = False  # whether it may be in the log without an acknowledgement
        self._encoded: bytearray | None = None
        self._plain: bytearray | None = None
        self._timestamp_ms = -1

    @property
    def topic_partition(self) -> TopicPartition:
        return self.delivery.topic_partition

    @property
    def records_bytes(self) -> int:
        return self.size_bytes - BATCH_HEADER_BYTES

    def add(self, record: Record, size_bytes: int) -> Receipt:
        delivery = self.delivery
        index = delivery.count
        self.records.append(record)
        self.size_bytes += size_bytes
        delivery.count = index + 1
        return Receipt(delivery, index)

    def extend(self, records: list[Record], size_bytes: int) -> None:
        self.records += records
        self.size_bytes += size_bytes
        self.delivery.count = len(self.records)

    def fill(self, plain: bytearray, count: int, timestamp_ms: int) -> None:
        """Sets the whole content: encoded records behind room for the header, all with one timestamp."""
        self._plain = plain
        self._timestamp_ms = timestamp_ms
        self.size_bytes = len(plain)
        self.delivery.count = count

    def stamp(self, identity: Identity, sequence: int) -> None:
        """Gives it a sequence number, with which a broker recognises a retry."""
        self.identity = identity
        self.sequence = sequence
        self._encoded = None

    def unstamp(self) -> None:
        self.identity = None
        self.sequence = -1
        self._encoded = None

    def encode(self, compression: Compression, level: int | None, *, transactional: bool = False) -> bytearray:
        if self._encoded is None:
            self._encoded = self._seal(self.identity or Identity(-1, -1), compression, level, transactional)
        return self._encoded

    def _seal(self, identity: Identity, compression: Compression, level: int | None, transactional: bool) -> bytearray:
        if self._plain is not None:
            return seal_batch(
                self._plain,
                self.delivery.count,
                self._timestamp_ms,
                compression=compression,
                level=level,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                base_sequence=self.sequence,
                transactional=transactional,
            )
        return build_batch(
            self.records,
            compression=compression,
            level=level,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=self.sequence,
            transactional=transactional,
        )
