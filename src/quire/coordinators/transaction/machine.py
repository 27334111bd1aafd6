"""TransactionMachine: the transactions of one partition of `__transaction_state`, and every request about them.

Each operation takes a request and the time, and returns records and a response (`quire.coordinators.runtime.result`).
What the machine needs of the outside, its owner gives it:

    surroundings        settings, timers and the cluster's image
    marker_writer       a `MarkerSender` (see there), made anew with every machine
    with_producer_id    for timeouts: `with_producer_id(operation)` gets a new producer id and has the shard run
                        `operation(machine, now_ms, producer_id)`. Where there is none to be had, it does nothing.

Requests that need a new producer id (InitProducerId of a new transactional id; EndTxn and InitProducerId when the
epochs are used up) raise `NeedsProducerId`, an ApiError, and have changed nothing. The caller gets an id and runs the
operation again with `fresh_id`; where there is none, the error is the answer. An id may be given from the start, too.
"""

from collections.abc import Callable, Sequence

from quire.coordinators.runtime.machine import Caller, Surroundings
from quire.coordinators.runtime.record import Origin, RecordTypes, StateRecord
from quire.coordinators.runtime.result import R, Result
from quire.coordinators.transaction.add_partitions import add_offsets, add_partitions, add_partitions_of
from quire.coordinators.transaction.end_txn import end_txn
from quire.coordinators.transaction.ending import completed
from quire.coordinators.transaction.init_producer_id import init_producer_id
from quire.coordinators.transaction.listing import describe, list_transactions
from quire.coordinators.transaction.producer_epochs import NO_PRODUCER_ID
from quire.coordinators.transaction.time_limits import TimeLimits
from quire.coordinators.transaction.transaction import Transaction
from quire.coordinators.transaction.transactions import Markers, MarkerWriter, Transactions
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from quire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
)
from quire.protocol.messages.describe_transactions import TransactionState
from quire.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from quire.protocol.messages.transaction_records import KEY_TYPES, VALUE_TYPES

OperationWithId = Callable[["TransactionMachine", int, int], Result[None]]
WithProducerId = Callable[[OperationWithId], None]


class TransactionMachine:
    record_types = RecordTypes(KEY_TYPES, VALUE_TYPES)

    __slots__ = ("_marker_writer", "_time_limits", "_transactions", "_with_producer_id")

    def __init__(
        self, surroundings: Surroundings, marker_writer: MarkerWriter, with_producer_id: WithProducerId
    ) -> None:
        self._marker_writer = marker_writer
        self._with_producer_id = with_producer_id
        self._transactions = Transactions(surroundings, marker_writer)
        self._time_limits = TimeLimits(self._transactions, self._want_producer_id)

    # Requests

    def init_producer_id(
        self, request: InitProducerIdRequest, caller: Caller, now_ms: int, fresh_id: int = NO_PRODUCER_ID
    ) -> Result[InitProducerIdResponse]:
        """Of a producer with a transactional id; others have no coordinator."""
        return init_producer_id(self._transactions, request, caller.api_version, now_ms, fresh_id)

    def add_partitions(
        self, request: AddPartitionsToTxnRequest, caller: Caller, now_ms: int
    ) -> Result[AddPartitionsToTxnResponse]:
        """As clients ask, in versions 0 to 3. Refusals are in the response, partition by partition."""
        return self._watched(add_partitions(self._transactions, request, caller.api_version, now_ms))

    def add_partitions_of(
        self, transaction: AddPartitionsToTxnTransaction, caller: Caller, now_ms: int
    ) -> Result[AddPartitionsToTxnResult]:
        """One of the transactions that a broker asks about, in versions 4 and 5: the others may be in other shards."""
        return self._watched(add_partitions_of(self._transactions, transaction, caller.api_version, now_ms))

    def add_offsets(
        self, request: AddOffsetsToTxnRequest, caller: Caller, now_ms: int, offsets_partition: int
    ) -> Result[AddOffsetsToTxnResponse]:
        """`offsets_partition` is the partition of `__consumer_offsets` in which the group is kept."""
        return self._watched(add_offsets(self._transactions, request, caller.api_version, now_ms, offsets_partition))

    def end_txn(
        self, request: EndTxnRequest, caller: Caller, now_ms: int, fresh_id: int = NO_PRODUCER_ID
    ) -> Result[EndTxnResponse]:
        return end_txn(self._transactions, request, caller.api_version, now_ms, fresh_id)

    def describe(self, transactional_id: str) -> Result[TransactionState]:
        """One of those that DescribeTransactions asks for: the others may be in other shards."""
        return Result(describe(self._transactions, transactional_id))

    def list_transactions(self, request: ListTransactionsRequest, now_ms: int) -> Result[ListTransactionsResponse]:
        """Those of this shard, whatever their ids: `id_pattern.by_pattern` chooses among those of all shards."""
        return Result(list_transactions(self._transactions, request, now_ms))

    def _watched(self, result: Result[R]) -> Result[R]:
        if result.records:
            self._time_limits.watch()
        return result

    # What the coordinator asks of itself

    def markers_written(self, markers: Markers, now_ms: int) -> Result[None]:
        """Each partition has its marker, or is gone: the transaction is complete, unless it was before."""
        transaction = self._transactions.get(markers.transactional_id)
        if transaction is None or not transaction.is_prepared or not _are_of(markers, transaction):
            return Result(None)
        # Until that is in the log a coordinator that is loaded writes the markers again, and nobody else can tell.
        return Result(None, [completed(self._transactions, transaction, now_ms)], can_wait=True)

    def _want_producer_id(self, transactional_id: str) -> None:
        self._with_producer_id(
            lambda machine, now_ms, producer_id: machine.abort_timed_out(transactional_id, now_ms, producer_id)
        )

    def abort_timed_out(self, transactional_id: str, now_ms: int, fresh_id: int) -> Result[None]:
        """A transaction that has timed out, now that there is a producer id with which its producer may go on."""
        return self._time_limits.abort(transactional_id, now_ms, fresh_id)

    # StateMachine

    def replay(self, record: StateRecord, origin: Origin) -> None:
        self._transactions.replay(record)

    def replay_end(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """No transaction writes to this log: what is in it counts at once."""

    def loaded(self, now_ms: int) -> None:
        self._time_limits.start()
        self._transactions.write_markers([each for each in self._transactions if each.is_prepared])

    def unloaded(self, reason: ErrorCode) -> None:
        self._marker_writer.stop()

    def metadata_changed(self, topics: Sequence[str], now_ms: int) -> None:
        self._marker_writer.metadata_changed()


def _are_of(markers: Markers, transaction: Transaction) -> bool:
    return markers.producer_id == transaction.producer_id and markers.producer_epoch == transaction.producer_epoch
