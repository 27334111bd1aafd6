"""TransactionMachine: the transactions of one partition of `__transaction_state`, and every request about them.

Each operation takes a request and the time, and returns a `CoordinatorResult`. The owner gives the machine

    environment        settings, timers and the cluster's image
    marker_writer       a `MarkerSender`, a new one for every machine
    shard               for timeouts that need a new producer id (`TransactionShard`)

Some requests need a new producer id: InitProducerId of a new transactional id, and EndTxn and InitProducerId when the
epochs are exhausted. They raise `NeedsProducerId`, an ApiError, and change nothing. The caller gets an id and runs the
operation again with `new_producer_id`. If there is none, the client gets the error.
"""

from collections.abc import Sequence

from quire.coordinators.runtime.machine import Caller, MachineEnvironment
from quire.coordinators.runtime.record import Origin, RecordTypes, StateRecord
from quire.coordinators.runtime.result import CoordinatorResult, R
from quire.coordinators.transaction.add_partitions import add_offsets, add_partitions, add_partitions_of
from quire.coordinators.transaction.end_txn import end_txn
from quire.coordinators.transaction.ending import completion
from quire.coordinators.transaction.init_producer_id import init_producer_id
from quire.coordinators.transaction.listing import describe, list_transactions
from quire.coordinators.transaction.producer_epochs import NO_PRODUCER_ID
from quire.coordinators.transaction.time_limits import TimeLimits
from quire.coordinators.transaction.transaction import Transaction
from quire.coordinators.transaction.transaction_shard import TransactionShard
from quire.coordinators.transaction.transactions import Markers, MarkerWriter, Transactions
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from quire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
)
from quire.protocol.messages.describe_transactions import TransactionState as DescribedTransaction
from quire.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from quire.protocol.messages.transaction_records import KEY_TYPES, VALUE_TYPES


class TransactionMachine:
    record_types = RecordTypes(KEY_TYPES, VALUE_TYPES)

    __slots__ = ("_marker_writer", "_time_limits", "_transactions")

    def __init__(self, environment: MachineEnvironment, marker_writer: MarkerWriter, shard: TransactionShard) -> None:
        self._marker_writer = marker_writer
        self._transactions = Transactions(environment, marker_writer)
        self._time_limits = TimeLimits(self._transactions, shard)

    # --- Requests

    def init_producer_id(
        self, request: InitProducerIdRequest, caller: Caller, now_ms: int, new_producer_id: int = NO_PRODUCER_ID
    ) -> CoordinatorResult[InitProducerIdResponse]:
        """For producers with a transactional id. Others need no coordinator."""
        return init_producer_id(self._transactions, request, caller.api_version, now_ms, new_producer_id)

    def add_partitions(
        self, request: AddPartitionsToTxnRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[AddPartitionsToTxnResponse]:
        """From clients, in versions 0 to 3. The response has an error for each partition."""
        return self._watched(add_partitions(self._transactions, request, caller.api_version, now_ms))

    def add_partitions_of(
        self, transaction: AddPartitionsToTxnTransaction, caller: Caller, now_ms: int
    ) -> CoordinatorResult[AddPartitionsToTxnResult]:
        """One transaction of a broker's request, in versions 4 and 5. The others may be in other shards."""
        return self._watched(add_partitions_of(self._transactions, transaction, caller.api_version, now_ms))

    def add_offsets(
        self, request: AddOffsetsToTxnRequest, caller: Caller, now_ms: int, offsets_partition: int
    ) -> CoordinatorResult[AddOffsetsToTxnResponse]:
        """`offsets_partition` is the partition of `__consumer_offsets` that has the group."""
        return self._watched(add_offsets(self._transactions, request, caller.api_version, now_ms, offsets_partition))

    def end_txn(
        self, request: EndTxnRequest, caller: Caller, now_ms: int, new_producer_id: int = NO_PRODUCER_ID
    ) -> CoordinatorResult[EndTxnResponse]:
        return end_txn(self._transactions, request, caller.api_version, now_ms, new_producer_id)

    def describe(self, transactional_id: str) -> CoordinatorResult[DescribedTransaction]:
        """One transactional id of a DescribeTransactions request. The others may be in other shards."""
        return CoordinatorResult(describe(self._transactions, transactional_id))

    def list_transactions(
        self, request: ListTransactionsRequest, now_ms: int
    ) -> CoordinatorResult[ListTransactionsResponse]:
        """The transactions of this shard. `id_pattern.by_pattern` filters those of all shards by id."""
        return CoordinatorResult(list_transactions(self._transactions, request, now_ms))

    def _watched(self, result: CoordinatorResult[R]) -> CoordinatorResult[R]:
        if result.records:
            self._time_limits.watch()
        return result

    # --- The coordinator's own operations

    def markers_written(self, markers: Markers, now_ms: int) -> CoordinatorResult[None]:
        """Each partition has its marker or was deleted. Completes the transaction, unless that is done."""
        transaction = self._transactions.get(markers.transactional_id)
        if transaction is None or not transaction.is_prepared or not _are_of(markers, transaction):
            return CoordinatorResult(None)
        # No request waits for this record. If it is lost, the next coordinator writes the markers again.
        return CoordinatorResult(None, [completion(self._transactions, transaction, now_ms)], can_wait=True)

    def abort_timed_out(self, transactional_id: str, now_ms: int, new_producer_id: int) -> CoordinatorResult[None]:
        """Aborts a timed out transaction whose producer needed a new id."""
        return self._time_limits.abort(transactional_id, now_ms, new_producer_id)

    # --- State machine

    def replay(self, record: StateRecord, origin: Origin) -> None:
        self._transactions.replay(record)

    def replay_end(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """No transaction writes to this log."""

    def loaded(self, now_ms: int) -> None:
        self._time_limits.start()
        self._transactions.write_markers([each for each in self._transactions if each.is_prepared])

    def unloaded(self, reason: ErrorCode) -> None:
        self._marker_writer.stop()

    def metadata_changed(self, topics: Sequence[str], now_ms: int) -> None:
        self._marker_writer.metadata_changed()


def _are_of(markers: Markers, transaction: Transaction) -> bool:
    return markers.producer_id == transaction.producer_id and markers.producer_epoch == transaction.producer_epoch
