"""Transaction: what the coordinator knows of one transactional id. It changes by its records alone."""

from collections.abc import Mapping, Sequence

from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.transaction.producer_epochs import HIGHEST_EPOCH, NO_EPOCH, NO_PRODUCER_ID
from quire.coordinators.transaction.states import AT_REST, ENDING, IN_THE_LOG, MAY_FOLLOW, PREPARED, State
from quire.protocol.errors import ProtocolError
from quire.protocol.messages.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue

# An enum's member is looked up anew each time it is named by its class.
_EMPTY = State.EMPTY
_ONGOING = State.ONGOING

NO_TIMESTAMP = -1
BUMPS_EPOCH = 2
"""The transaction version whose ends of transactions give a producer its next epoch."""

Partitions = Mapping[str, Sequence[int]]
"""By topic; never changed once it is there."""

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
        self.state = State.EMPTY
        self.producer_id = producer_id
        self.producer_epoch = NO_EPOCH
        self.previous_producer_id = NO_PRODUCER_ID
        self.next_producer_id = NO_PRODUCER_ID
        """With which the producer goes on when the transaction, which used up the epochs of this one, is complete."""
        self.last_epoch = NO_EPOCH
        """That of the same producer before it got this one, so that a repeated request is known for what it is."""
        self.continues_from = NO_EPOCH
        """What `last_epoch` is to be when the record that InitProducerId wrote last is replayed: it is not in there."""
        self.timeout_ms = 0
        self.partitions = NO_PARTITIONS
        self.start_ms = NO_TIMESTAMP
        self.last_update_ms = NO_TIMESTAMP
        self.client_version = 0
        """The transaction version that was spoken when the state was last changed."""

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

    def take_over(self, value: TransactionLogValue) -> None:
        """The record is in the log, or is about to be."""
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

    def _last_epoch(self, state: State, value: TransactionLogValue) -> int:
        if state is _EMPTY:
            return self.continues_from
        if state is not _ONGOING and value.client_transaction_version >= BUMPS_EPOCH:
            rotated = value.producer_epoch == 0 and value.previous_producer_id != value.producer_id
            return HIGHEST_EPOCH - 1 if rotated else value.producer_epoch - 1
        same = value.producer_id == self.producer_id and value.producer_epoch == self.producer_epoch
        return self.last_epoch if same else NO_EPOCH

    def record(
        self,
        state: State,
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
        """The record after which the transaction is in `state`; what is not given stays as it is.

        Version 0, of clusters without the feature transaction.version, has no room for other producer ids.
        """
        assert self.state in MAY_FOLLOW[state], f"{state.name} cannot follow {self.state.name}"
        if partitions is None:
            partitions = self.partitions
        value = TransactionLogValue(
            producer_id=self.producer_id if producer_id is None else producer_id,
            producer_epoch=self.producer_epoch if producer_epoch is None else producer_epoch,
            transaction_timeout_ms=self.timeout_ms if timeout_ms is None else timeout_ms,
            transaction_status=int(state),
            # Kafka writes none, rather than an empty list, where there cannot be any.
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
