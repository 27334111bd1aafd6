"""What a partition knows of each producer: its epoch, its last five batches, and its open transaction.

With this a retried batch is recognised and answered with the offsets it got the first time, and a batch that came
before its predecessor is refused. Five, because a producer may have five requests on their way at once, and retries
arrive in any of their places. `check` decides before a batch is written, `update` (or `end_transaction`, for a marker)
records it after; replaying a log through these gives the same state, which is how it comes back after a crash.
"""

from collections.abc import Iterator

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records.batch import BatchHeader
from quire.storage.end_marker import EndMarker
from quire.storage.transaction_index import AbortedTransaction

MOST_PRODUCERS = 50_000
"""Of one partition, open transactions aside. Anybody can make up producer ids, and each costs some hundred bytes for as
long as it is remembered."""

REMEMBERED_BATCHES = 5
NO_PRODUCER = -1
NO_SEQUENCE = -1
NO_OFFSET = -1
MAX_SEQUENCE = 0x7FFFFFFF


def sequence_after(sequence: int, steps: int) -> int:
    """Sequence numbers go from 0 to 2^31 - 1 and round again."""
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

    __slots__ = ("batches", "coordinator_epoch", "current_txn_first_offset", "epoch", "last_timestamp", "producer_id")

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.batches: list[RememberedBatch] = []
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        self.current_txn_first_offset = NO_OFFSET
        """Where its open transaction began; -1 when none is open."""

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
                f"producer {self.producer_id} has epoch {self.epoch} by now, not {producer_epoch}",
            )

    def check_order(self, header: BatchHeader) -> None:
        """ApiError unless the batch may follow what this producer wrote last."""
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
            # All it wrote is a transaction's end, after which an epoch starts again from nothing.
            expected = 0
        if sequence != expected:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {self.producer_id} sent sequence {sequence} where {expected} is next",
            )

    def check_end(self, producer_epoch: int, coordinator_epoch: int, *, bumps_epoch: bool) -> bool:
        """Whether a marker is to be written that ends this producer's transaction; False if that has been done.

        With transaction protocol 2 a marker's epoch is above that of the records it ends. So one that is repeated is
        known for what it is, and cannot end the transaction after its own.
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
                f"producer {self.producer_id} has epoch {self.epoch} by now, and {producer_epoch} cannot end it",
            )
        return is_open or producer_epoch > self.epoch or not bumps_epoch

    def add(self, header: BatchHeader) -> None:
        self._meet(header)
        if len(self.batches) == REMEMBERED_BATCHES:
            del self.batches[0]
        self.batches.append(
            RememberedBatch(header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp)
        )
        if header.is_transactional and self.current_txn_first_offset == NO_OFFSET:
            self.current_txn_first_offset = header.base_offset

    def end_transaction(self, header: BatchHeader, marker: EndMarker) -> int:
        """Where the transaction began that a marker ends; -1 if it wrote nothing here."""
        self._meet(header)
        self.coordinator_epoch = marker.coordinator_epoch
        first_offset, self.current_txn_first_offset = self.current_txn_first_offset, NO_OFFSET
        return first_offset

    def _meet(self, header: BatchHeader) -> None:
        if header.producer_epoch != self.epoch:
            self.epoch = header.producer_epoch
            self.batches.clear()
        self.last_timestamp = header.max_timestamp


class ProducerState:
    """All producers of one partition."""

    __slots__ = ("_open_transactions", "_producers")

    def __init__(self) -> None:
        self._producers: dict[int, ProducerEntry] = {}
        self._open_transactions: dict[int, int] = {}
        """Producer id -> first offset, of those that have a transaction open."""

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._producers.values())

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self._producers.get(producer_id)

    def put(self, producer: ProducerEntry) -> None:
        self._producers[producer.producer_id] = producer
        if producer.current_txn_first_offset != NO_OFFSET:
            self._open_transactions[producer.producer_id] = producer.current_txn_first_offset

    @property
    def first_open_transaction_offset(self) -> int | None:
        """Where the oldest transaction begins that has not ended; None when none is open."""
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
        """ApiError if a newer incarnation of the producer is known."""
        producer = self._producers.get(producer_id)
        if producer is not None:
            producer.check_epoch(producer_epoch)

    def check(self, header: BatchHeader, *, from_zero: bool = False) -> RememberedBatch | None:
        """None if the batch may be appended, the original if it was before; ApiError if it must not be.

        A producer nobody remembers may begin with any sequence: its earlier batches may have been deleted, or it may
        have been idle until it was forgotten. Only `from_zero`, with transaction protocol 2, it may not: there each
        transaction has an epoch of its own, which begins at 0. Batches are judged one by one against what is in the
        log, so two new ones of one producer cannot come in one append; clients send one batch per partition and
        request.
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
        return duplicate

    def check_end(self, producer_id: int, producer_epoch: int, coordinator_epoch: int, *, bumps_epoch: bool) -> bool:
        """Whether a marker is to be written; False if it has been before; ApiError if it must not be."""
        producer = self._producers.get(producer_id)
        return producer is None or producer.check_end(producer_epoch, coordinator_epoch, bumps_epoch=bumps_epoch)

    def update(self, header: BatchHeader) -> None:
        """A producer's batch of records, with its final offsets, is in the log."""
        producer = self._producer(header)
        producer.add(header)
        if header.is_transactional:
            self._open_transactions[header.producer_id] = producer.current_txn_first_offset

    def end_transaction(self, header: BatchHeader, marker: EndMarker) -> AbortedTransaction | None:
        """A marker is in the log; returns what the transaction index has to say about it, if anything.

        A transaction that wrote nothing here is not worth an entry, nor is one that was committed.
        """
        first_offset = self._producer(header).end_transaction(header, marker)
        self._open_transactions.pop(header.producer_id, None)
        if not marker.aborts or first_offset == NO_OFFSET:
            return None
        last_stable_offset = self.first_open_transaction_offset
        if last_stable_offset is None:
            last_stable_offset = header.last_offset + 1
        return AbortedTransaction(header.producer_id, first_offset, header.last_offset, last_stable_offset)

    def _producer(self, header: BatchHeader) -> ProducerEntry:
        producer = self._producers.get(header.producer_id)
        if producer is None:
            if len(self._producers) >= MOST_PRODUCERS:
                self._forget_some()
            producer = self._producers[header.producer_id] = ProducerEntry(header.producer_id, header.producer_epoch)
        return producer

    def _forget_some(self) -> None:
        """Those that wrote longest ago, by what this log knows itself: times are as clients say they are."""
        idle = [each for each in self._producers.values() if each.current_txn_first_offset == NO_OFFSET]
        idle.sort(key=lambda producer: producer.last_offset)
        for producer in idle[: max(1, MOST_PRODUCERS // 10)]:
            del self._producers[producer.producer_id]

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Forgets producers that wrote nothing for so long, unless a transaction of theirs is open."""
        expired = [
            producer.producer_id
            for producer in self._producers.values()
            if producer.current_txn_first_offset == NO_OFFSET and now_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self._producers[producer_id]
