"""How a transaction ends, by its producer or by the coordinator: decision, markers, completion.

The decision is one record (PrepareCommit or PrepareAbort). After it is committed the markers are sent, and after they
are written a second record completes the transaction. A coordinator that loads the first record without the second one
sends the markers again.
"""

from functools import partial

from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.runtime.result import CoordinatorResult, R
from quire.coordinators.transaction.producer_epochs import (
    HIGHEST_EPOCH,
    NO_PRODUCER_ID,
    is_exhausted,
    require_producer_id,
)
from quire.coordinators.transaction.transaction import BUMPS_EPOCH, NO_PARTITIONS, Transaction
from quire.coordinators.transaction.transaction_state import COMPLETE, TransactionState
from quire.coordinators.transaction.transactions import Transactions


def producer_decision(
    transactions: Transactions,
    transaction: Transaction,
    is_commit: bool,
    bumps_epoch: bool,
    now_ms: int,
    new_producer_id: int,
) -> StateRecord:
    """The decision of an EndTxn. NeedsProducerId if the producer must continue with another id."""
    state = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
    # A transaction that has not begun is aborted with this start time, because every ended one must have one.
    start_ms = now_ms if transaction.is_at_rest else None
    if not bumps_epoch:
        return transaction.record(state, now_ms, transactions.log_version, start_ms=start_ms, client_version=0)
    return _with_next_epoch(transactions, transaction, state, now_ms, start_ms, new_producer_id)


def coordinator_abort(
    transactions: Transactions, transaction: Transaction, now_ms: int, new_producer_id: int = NO_PRODUCER_ID
) -> StateRecord:
    """An abort that the producer did not ask for. The next epoch fences the producer, with either protocol.

    NeedsProducerId as above.
    """
    epoch = transaction.producer_epoch
    if transactions.transaction_version >= BUMPS_EPOCH and epoch < HIGHEST_EPOCH:
        return _with_next_epoch(
            transactions, transaction, TransactionState.PREPARE_ABORT, now_ms, None, new_producer_id
        )
    return transaction.record(
        TransactionState.PREPARE_ABORT,
        now_ms,
        transactions.log_version,
        producer_epoch=min(epoch + 1, HIGHEST_EPOCH),
        client_version=0,
    )


def _with_next_epoch(
    transactions: Transactions,
    transaction: Transaction,
    state: TransactionState,
    now_ms: int,
    start_ms: int | None,
    new_producer_id: int,
) -> StateRecord:
    epoch = transaction.producer_epoch
    return transaction.record(
        state,
        now_ms,
        transactions.log_version,
        producer_epoch=epoch + 1,
        next_producer_id=require_producer_id(new_producer_id) if is_exhausted(epoch) else NO_PRODUCER_ID,
        start_ms=start_ms,
        client_version=BUMPS_EPOCH,
    )


def decision_result(
    transactions: Transactions, transaction: Transaction, response: R, decision: StateRecord
) -> CoordinatorResult[R]:
    """Writes the decision. `Transactions.decision_written` sends the markers when it is committed."""
    return CoordinatorResult(response, [decision], partial(transactions.decision_written, [transaction]))


def next_identity(transaction: Transaction) -> tuple[int, int]:
    """The producer id and epoch that the producer uses after the transaction is complete."""
    if transaction.next_producer_id != NO_PRODUCER_ID:
        return transaction.next_producer_id, 0
    return transaction.producer_id, transaction.producer_epoch


def completion(transactions: Transactions, transaction: Transaction, now_ms: int) -> StateRecord:
    """The record that completes a transaction, after every partition has its marker."""
    producer_id, producer_epoch = next_identity(transaction)
    return transaction.record(
        COMPLETE[transaction.state],
        now_ms,
        transactions.log_version,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partitions=NO_PARTITIONS,
    )
