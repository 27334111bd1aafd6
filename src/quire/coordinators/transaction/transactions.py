"""Transactions: the transactions of a shard by transactional id, and what their operations share."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from quire.coordinators.runtime.machine import MachineEnvironment
from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.transaction.transaction import Partitions, Transaction
from quire.coordinators.transaction.transaction_state import TransactionState
from quire.metadata.features import TRANSACTION_VERSION
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTopic
from quire.protocol.messages.transaction_records import TransactionLogKey, TransactionLogValue

# Module constants, because a lookup of an enum member through its class is slow.
_ONGOING = TransactionState.ONGOING


class Markers(NamedTuple):
    """The markers that end one transaction in its partitions."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    transaction_version: int
    partitions: Partitions


class MarkerWriter(Protocol):
    """Writes markers to their partitions, with retries. `MarkerSender` implements it."""

    def write(self, decided: Iterable[Markers]) -> None: ...

    def metadata_changed(self) -> None:
        """Partitions may have new leaders, or be deleted."""
        ...

    def stop(self) -> None:
        """Sends nothing and reports nothing after this."""
        ...


class Transactions:
    __slots__ = ("_by_id", "_marker_writer", "environment", "ongoing")

    def __init__(self, environment: MachineEnvironment, marker_writer: MarkerWriter) -> None:
        self.environment = environment
        self.ongoing: dict[str, Transaction] = {}
        """Open transactions, which may time out."""
        self._by_id: dict[str, Transaction] = {}
        self._marker_writer = marker_writer

    def __iter__(self) -> Iterator[Transaction]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, transactional_id: str) -> Transaction | None:
        return self._by_id.get(transactional_id)

    def replay(self, record: StateRecord) -> None:
        assert isinstance(record.key, TransactionLogKey)
        transactional_id = record.key.transactional_id
        if record.value is None:
            self._forget(transactional_id)
            return
        assert isinstance(record.value, TransactionLogValue)
        transaction = self._by_id.get(transactional_id)
        if transaction is None:
            transaction = Transaction(transactional_id)
            transaction.apply(record.value)
            self._by_id[transactional_id] = transaction
        else:
            transaction.apply(record.value)
        if transaction.state is _ONGOING:
            self.ongoing[transactional_id] = transaction
        else:
            self.ongoing.pop(transactional_id, None)

    def _forget(self, transactional_id: str) -> None:
        transaction = self._by_id.pop(transactional_id, None)
        if transaction is not None:
            transaction.state = TransactionState.DEAD
            self.ongoing.pop(transactional_id, None)

    def decision_written(self, decided: Iterable[Transaction], code: ErrorCode) -> None:
        """The runtime calls this when decisions are committed, or cannot be written."""
        if code is ErrorCode.NONE:
            self.write_markers(decided)

    def write_markers(self, decided: Iterable[Transaction]) -> None:
        """Only for committed decisions, because a marker cannot be undone."""
        self._marker_writer.write([_markers_of(transaction) for transaction in decided])

    # --- Cluster metadata

    @property
    def transaction_version(self) -> int:
        """The finalized level of the feature; protocol 2 needs level 2."""
        return self.environment.image().features.get(TRANSACTION_VERSION, 0)

    @property
    def log_version(self) -> int:
        """The version in which values are written."""
        return 1 if self.environment.image().features.get(TRANSACTION_VERSION, 0) >= 1 else 0

    def has_partitions(self, topics: Iterable[AddPartitionsToTxnTopic]) -> bool:
        """Whether all of them exist."""
        by_name = self.environment.image().topics_by_name
        for topic in topics:
            found = by_name.get(topic.name)
            if found is None:
                return False
            for index in topic.partitions:
                if index not in found.partitions:
                    return False
        return True

    def has_partition(self, topic: str, partition: int) -> bool:
        found = self.environment.image().topic(topic)
        return found is not None and partition in found.partitions


def _markers_of(transaction: Transaction) -> Markers:
    assert transaction.is_prepared, transaction
    return Markers(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.state is TransactionState.PREPARE_COMMIT,
        transaction.client_version,
        transaction.partitions,
    )
