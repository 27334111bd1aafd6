"""The state of each producer of a partition: its epoch, its last five batches, and its open transaction.

With this state a retried batch is recognised and answered with its original offsets, and a batch that arrives before
its predecessor is refused. Five batches, because a producer may have five requests in flight, and any of them may be
retried. `check` decides before a batch is written, `update` (or `end_transaction`, for a marker) records it afterwards.
After a crash, replaying the log through these restores the state.
"""

from collections.abc import Iterator

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records.batch import BatchHeader
from quire.storage.indexes.transaction_index import AbortedTransaction
from quire.storage.producers.end_marker import EndMarker

MOST_PRODUCERS = 50_000
"""Limit per partition; producers with open transactions do not count. Any client can invent producer ids, and each
costs some hundred bytes while it is remembered."""

REMEMBERED_BATCHES = 5
NO_PRODUCER = -1
NO_SEQUENCE = -1
NO_OFFSET = -1
MAX_SEQUENCE = 0x7FFFFFFF


def sequence_after(sequence: int, steps: int) -> int:
    """Sequence numbers go from 0 to 2^31 - 1 and then wrap to 0."""
    return (sequence + steps) & MAX_SEQUENCE


class RememberedBatch:
    """One batch as it was appended."""

    __slots__ = ("first_sequence", "last_offset", "last_sequence", "offset_delta", "timestamp")

    def __init__(self, last_sequence: int, last_offset: int, offset_delta: int, timestamp: int) -> None:
        self.last_sequence = last_sequence
        self.first_sequence = sequence_after(last_sequence, -offset_delta)
        self.last_offset = last_offset
        self.offset_delta = offset_delta
        self.timestamp = timestamp

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """One producer id on one partition."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "epoch",
        "generation",
        "last_timestamp",
        "producer_id",
    )

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.batches: list[RememberedBatch] = []
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        self.current_txn_first_offset = NO_OFFSET
        """Where its open transaction began; -1 if none is open."""
        self.generation = 0
        """The generation of the state in which it may be changed; see `ProducerState.freeze`."""

    def copy(self, generation: int) -> "ProducerEntry":
        copied = ProducerEntry(self.producer_id, self.epoch)
        copied.batches = self.batches.copy()
        copied.last_timestamp = self.last_timestamp
        copied.coordinator_epoch = self.coordinator_epoch
        copied.current_txn_first_offset = self.current_txn_first_offset
        copied.generation = generation
        return copied

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def find_duplicate(self, header: BatchHeader) -> RememberedBatch | None:
        if header.producer_epoch != self.epoch or header.base_sequence == NO_SEQUENCE:
            return None
        first, last = header.base_sequence, header.last_sequence
        for batch in self.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return batch
        return None

    def check_epoch(self, producer_epoch: int) -> None:
        if producer_epoch < self.epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {self.producer_id} now has epoch {self.epoch}, not {producer_epoch}",
            )

    def check_order(self, header: BatchHeader) -> None:
        """ApiError unless the batch may follow this producer's last batch."""
        self.check_epoch(header.producer_epoch)
        if self.current_txn_first_offset != NO_OFFSET and not header.is_transactional:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {self.producer_id} has a transaction open here: it must end it before it writes without one",
            )
        sequence = header.base_sequence
        if sequence == NO_SEQUENCE:
            return
        if header.producer_epoch > self.epoch:
            expected = 0
        elif self.batches:
            expected = sequence_after(self.batches[-1].last_sequence, 1)
        else:
            # It wrote only a marker in this epoch, so its sequence numbers start at 0.
            expected = 0
        if sequence != expected:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {self.producer_id} sent sequence {sequence} where {expected} is next",
            )

    def check_transaction_of(self, original: RememberedBatch) -> None:
        """ApiError if the original of a repeated batch is not part of the open transaction.

        A producer ends a transaction only when each of its batches is answered or given up, so it never repeats one
        afterwards. What arrives has other records: librdkafka gives the sequence numbers of batches that it has given
        up to the next transaction of the same epoch (transaction protocol 1), and cannot know that they were written.
        If the broker acknowledged such a batch as a duplicate, its records would be lost. With UNKNOWN_PRODUCER_ID it
        aborts the transaction and asks for a new epoch; with OUT_OF_ORDER_SEQUENCE_NUMBER it would give up entirely.
        Replaying the log or reading a snapshot gives the same first offset, so all leaders decide the same.
        """
        if self.current_txn_first_offset == NO_OFFSET or original.first_offset < self.current_txn_first_offset:
            raise ApiError(
                ErrorCode.UNKNOWN_PRODUCER_ID,
                f"producer {self.producer_id} has used the sequence numbers {original.first_sequence} to "
                f"{original.last_sequence} in a transaction that has ended: abort this one",
            )

    def check_end(self, producer_epoch: int, coordinator_epoch: int, *, bumps_epoch: bool) -> bool:
        """Whether a marker that ends this producer's transaction must be written; False if it has been written before.

        With transaction protocol 2 a marker's epoch is above that of the records it ends. So a repeated marker is
        recognised, and cannot end the next transaction.
        """
        if coordinator_epoch < self.coordinator_epoch:
            raise ApiError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a coordinator of epoch {self.coordinator_epoch} has written here, this one has {coordinator_epoch}",
            )
        is_open = self.current_txn_first_offset != NO_OFFSET
        if producer_epoch < self.epoch or (bumps_epoch and is_open and producer_epoch == self.epoch):
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {self.producer_id} now has epoch {self.epoch}, and {producer_epoch} cannot end it",
            )
        return is_open or producer_epoch > self.epoch or not bumps_epoch

    def add(self, header: BatchHeader) -> None:
        self._visit(header)
        if len(self.batches) == REMEMBERED_BATCHES:
            del self.batches[0]
        self.batches.append(
            RememberedBatch(header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp)
        )
        if header.is_transactional and self.current_txn_first_offset == NO_OFFSET:
            self.current_txn_first_offset = header.base_offset

    def end_transaction(self, header: BatchHeader, marker: EndMarker) -> int:
        """Ends the transaction; returns its first offset, or -1 if it has no records here."""
        self._visit(header)
        self.coordinator_epoch = marker.coordinator_epoch
        first_offset, self.current_txn_first_offset = self.current_txn_first_offset, NO_OFFSET
        return first_offset

    def _visit(self, header: BatchHeader) -> None:
        if header.producer_epoch != self.epoch:
            self.epoch = header.producer_epoch
            self.batches.clear()
        self.last_timestamp = header.max_timestamp


class ProducerState:
    """All producers of one partition."""

    __slots__ = ("_generation", "_open_transactions", "_producers")

    def __init__(self) -> None:
        self._generation = 0
        self._producers: dict[int, ProducerEntry] = {}
        self._open_transactions: dict[int, int] = {}
        """Producer id -> first offset of its open transaction."""

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._producers.values())

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self._producers.get(producer_id)

    def freeze(self) -> list[ProducerEntry]:
        """All producers as they are now, for a job: from now on each of them is copied before it changes."""
        self._generation += 1
        return list(self._producers.values())

    def put(self, producer: ProducerEntry) -> None:
        producer.generation = self._generation
        self._producers[producer.producer_id] = producer
        if producer.current_txn_first_offset != NO_OFFSET:
            self._open_transactions[producer.producer_id] = producer.current_txn_first_offset

    @property
    def first_open_transaction_offset(self) -> int | None:
        """The first offset of the oldest open transaction; None if none is open."""
        return min(self._open_transactions.values()) if self._open_transactions else None

    def open_since(self, producer_id: int) -> int | None:
        """The first offset of the producer's open transaction, if there is one."""
        return self._open_transactions.get(producer_id)

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        producer = self._producers.get(producer_id)
        return (
            producer is not None and producer.epoch == producer_epoch and producer.current_txn_first_offset != NO_OFFSET
        )

    def check_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """ApiError if the producer has a higher epoch here."""
        producer = self._producers.get(producer_id)
        if producer is not None:
            producer.check_epoch(producer_epoch)

    def check(self, header: BatchHeader, *, from_zero: bool = False) -> RememberedBatch | None:
        """None if the batch may be appended, the original if it is a duplicate; ApiError if it must not be appended.

        An unknown producer may begin with any sequence number: its earlier batches may have been deleted, or it may
        have expired. With `from_zero` (transaction protocol 2) it may not, because each transaction has its own epoch,
        which begins at 0. Each batch is checked against the log alone, so one append cannot contain two new batches of
        one producer; clients send one batch per partition and request.
        """
        producer = self._producers.get(header.producer_id)
        if producer is None:
            if from_zero and header.base_sequence > 0:
                raise ApiError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {header.producer_id} is new here and must begin with sequence 0, not "
                    f"{header.base_sequence}",
                )
            return None
        duplicate = producer.find_duplicate(header)
        if duplicate is None:
            producer.check_order(header)
        elif header.is_transactional:
            producer.check_transaction_of(duplicate)
        return duplicate

    def check_end(self, producer_id: int, producer_epoch: int, coordinator_epoch: int, *, bumps_epoch: bool) -> bool:
        """Whether a marker must be written; False if it has been written before, ApiError if it must not be written."""
        producer = self._producers.get(producer_id)
        return producer is None or producer.check_end(producer_epoch, coordinator_epoch, bumps_epoch=bumps_epoch)

    def update(self, header: BatchHeader) -> None:
        """Records a batch that was appended, with its final offsets."""
        producer = self._producer(header)
        producer.add(header)
        if header.is_transactional:
            self._open_transactions[header.producer_id] = producer.current_txn_first_offset

    def end_transaction(self, header: BatchHeader, marker: EndMarker) -> AbortedTransaction | None:
        """Records a marker that was appended; returns the entry for the transaction index, if any.

        A committed transaction and one without records here need no entry.
        """
        first_offset = self._producer(header).end_transaction(header, marker)
        self._open_transactions.pop(header.producer_id, None)
        if not marker.aborts or first_offset == NO_OFFSET:
            return None
        last_stable_offset = self.first_open_transaction_offset
        if last_stable_offset is None:
            last_stable_offset = header.last_offset + 1
        return AbortedTransaction(header.producer_id, first_offset, header.last_offset, last_stable_offset)

    def ended_unseen(self, producer_id: int) -> None:
        """The marker of its open transaction was in the log, and cannot be read any more."""
        producer = self._producers.get(producer_id)
        if producer is not None and self._open_transactions.pop(producer_id, None) is not None:
            producer = self._producers[producer_id] = producer.copy(self._generation)
            producer.current_txn_first_offset = NO_OFFSET

    def _producer(self, header: BatchHeader) -> ProducerEntry:
        producer = self._producers.get(header.producer_id)
        if producer is None:
            if len(self._producers) >= MOST_PRODUCERS:
                self._forget_some()
            producer = self._producers[header.producer_id] = ProducerEntry(header.producer_id, header.producer_epoch)
            producer.generation = self._generation
        elif producer.generation != self._generation:
            producer = self._producers[header.producer_id] = producer.copy(self._generation)
        return producer

    def _forget_some(self) -> None:
        """Removes the producers whose last offset is lowest. Timestamps are not used, because clients set them."""
        idle = [each for each in self._producers.values() if each.current_txn_first_offset == NO_OFFSET]
        idle.sort(key=lambda producer: producer.last_offset)
        for producer in idle[: max(1, MOST_PRODUCERS // 10)]:
            del self._producers[producer.producer_id]

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Removes producers that wrote nothing for `expiration_ms`, unless they have an open transaction."""
        expired = [
            producer.producer_id
            for producer in self._producers.values()
            if producer.current_txn_first_offset == NO_OFFSET and now_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self._producers[producer_id]
