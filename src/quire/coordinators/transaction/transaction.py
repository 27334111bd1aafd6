"""Transaction: the state of one transactional id. Only its records change it."""

from collections.abc import Mapping, Sequence

from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.transaction.producer_epochs import HIGHEST_EPOCH, NO_EPOCH, NO_PRODUCER_ID
from quire.coordinators.transaction.transaction_state import (
    AT_REST,
    ENDING,
    IN_THE_LOG,
    MAY_FOLLOW,
    PREPARED,
    TransactionState,
)
from quire.protocol.errors import ProtocolError
from quire.protocol.messages.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue

# Module constants, because a lookup of an enum member through its class is slow.
_EMPTY = TransactionState.EMPTY
_ONGOING = TransactionState.ONGOING

NO_TIMESTAMP = -1
BUMPS_EPOCH = 2
"""The first transaction version in which the end of a transaction gives the producer its next epoch."""

Partitions = Mapping[str, Sequence[int]]
"""Partition indexes by topic. Never modified in place."""

NO_PARTITIONS: Partitions = {}


class Transaction:
    __slots__ = (
        "_key",
        "client_version",
        "continues_from",
        "last_epoch",
        "last_update_ms",
        "next_producer_id",
        "partitions",
        "previous_producer_id",
        "producer_epoch",
        "producer_id",
        "start_ms",
        "state",
        "timeout_ms",
        "transactional_id",
    )

    def __init__(self, transactional_id: str, producer_id: int = NO_PRODUCER_ID) -> None:
        self.transactional_id = transactional_id
        self._key = TransactionLogKey(transactional_id=transactional_id)
        self.state = TransactionState.EMPTY
        self.producer_id = producer_id
        self.producer_epoch = NO_EPOCH
        self.previous_producer_id = NO_PRODUCER_ID
        self.next_producer_id = NO_PRODUCER_ID
        """The id that the producer gets when this transaction, which used the last epoch, is complete."""
        self.last_epoch = NO_EPOCH
        """The previous epoch of the same producer, to recognize a repeated request."""
        self.continues_from = NO_EPOCH
        """What the next replayed record of InitProducerId sets `last_epoch` to: the record does not have it."""
        self.timeout_ms = 0
        self.partitions = NO_PARTITIONS
        self.start_ms = NO_TIMESTAMP
        self.last_update_ms = NO_TIMESTAMP
        self.client_version = 0
        """The transaction version of the request that last changed the state."""

    def __repr__(self) -> str:
        return f"Transaction({self.transactional_id!r}, {self.state.name}, {self.producer_id}:{self.producer_epoch})"

    @property
    def is_prepared(self) -> bool:
        return self.state in PREPARED

    @property
    def is_ending(self) -> bool:
        return self.state in ENDING

    @property
    def is_at_rest(self) -> bool:
        return self.state in AT_REST

    @property
    def partition_count(self) -> int:
        return sum(map(len, self.partitions.values()))

    def apply(self, value: TransactionLogValue) -> None:
        """Replays a record that is in the log or about to be."""
        state = IN_THE_LOG.get(value.transaction_status)
        if state is None:
            raise ProtocolError(f"transaction {self.transactional_id} has state {value.transaction_status} in the log")
        self.last_epoch = self._last_epoch(state, value)
        self.continues_from = NO_EPOCH
        self.state = state
        self.producer_id = value.producer_id
        self.producer_epoch = value.producer_epoch
        self.previous_producer_id = value.previous_producer_id
        self.next_producer_id = value.next_producer_id
        self.timeout_ms = value.transaction_timeout_ms
        self.partitions = _by_topic(value.transaction_partitions)
        self.start_ms = value.transaction_start_timestamp_ms
        self.last_update_ms = value.transaction_last_update_timestamp_ms
        self.client_version = value.client_transaction_version

    def _last_epoch(self, state: TransactionState, value: TransactionLogValue) -> int:
        if state is _EMPTY:
            return self.continues_from
        if state is not _ONGOING and value.client_transaction_version >= BUMPS_EPOCH:
            rotated = value.producer_epoch == 0 and value.previous_producer_id != value.producer_id
            return HIGHEST_EPOCH - 1 if rotated else value.producer_epoch - 1
        same = value.producer_id == self.producer_id and value.producer_epoch == self.producer_epoch
        return self.last_epoch if same else NO_EPOCH

    def record(
        self,
        state: TransactionState,
        now_ms: int,
        log_version: int,
        *,
        producer_id: int | None = None,
        producer_epoch: int | None = None,
        next_producer_id: int = NO_PRODUCER_ID,
        timeout_ms: int | None = None,
        partitions: Partitions | None = None,
        start_ms: int | None = None,
        client_version: int | None = None,
    ) -> StateRecord:
        """The record that moves the transaction to `state`. Arguments that are not given keep their values.

        Version 0, of clusters without the feature transaction.version, cannot hold the other producer ids.
        """
        assert self.state in MAY_FOLLOW[state], f"{state.name} cannot follow {self.state.name}"
        if partitions is None:
            partitions = self.partitions
        value = TransactionLogValue(
            producer_id=self.producer_id if producer_id is None else producer_id,
            producer_epoch=self.producer_epoch if producer_epoch is None else producer_epoch,
            transaction_timeout_ms=self.timeout_ms if timeout_ms is None else timeout_ms,
            transaction_status=int(state),
            # In state Empty Kafka writes null instead of an empty list.
            transaction_partitions=None if state is _EMPTY else _as_schema(partitions),
            transaction_last_update_timestamp_ms=now_ms,
            transaction_start_timestamp_ms=self.start_ms if start_ms is None else start_ms,
        )
        assert value.producer_id >= 0 and 0 <= value.producer_epoch <= HIGHEST_EPOCH
        if log_version >= 1:
            value.previous_producer_id = self.producer_id
            value.next_producer_id = next_producer_id
            value.client_transaction_version = self.client_version if client_version is None else client_version
        return StateRecord(self._key, value, log_version)


def _by_topic(schema: list[PartitionsSchema] | None) -> Partitions:
    if not schema:
        return NO_PARTITIONS
    if len(schema) == 1:
        return {schema[0].topic: schema[0].partition_ids}
    partitions: dict[str, list[int]] = {}
    for topic in schema:
        partitions.setdefault(topic.topic, []).extend(topic.partition_ids)
    return partitions


def _as_schema(partitions: Partitions) -> list[PartitionsSchema]:
    return [PartitionsSchema(topic=topic, partition_ids=list(ids)) for topic, ids in partitions.items()]
