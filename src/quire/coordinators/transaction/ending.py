"""How a transaction ends: decided, its markers written, complete; by its producer, or by the coordinator itself.

The end is decided by one record. When that is committed the markers go out, and when these are written a second record
says so. A coordinator that is loaded with the first record and without the second writes the markers again.
"""

from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.runtime.result import R, Result
from quire.coordinators.transaction.producer_epochs import HIGHEST_EPOCH, NO_PRODUCER_ID, is_exhausted, taken
from quire.coordinators.transaction.states import COMPLETE, State
from quire.coordinators.transaction.transaction import BUMPS_EPOCH, NO_PARTITIONS, Transaction
from quire.coordinators.transaction.transactions import Transactions
from quire.protocol.errors import ErrorCode


def by_its_producer(
    transactions: Transactions, transaction: Transaction, is_commit: bool, bumps_epoch: bool, now_ms: int, fresh_id: int
) -> StateRecord:
    """The decision that EndTxn asks for. NeedsProducerId where the producer goes on with another id."""
    state = State.PREPARE_COMMIT if is_commit else State.PREPARE_ABORT
    # What has not begun is aborted as of now: when it began is asked for everywhere.
    start_ms = now_ms if transaction.is_at_rest else None
    if not bumps_epoch:
        return transaction.record(state, now_ms, transactions.log_version, start_ms=start_ms, client_version=0)
    return _with_next_epoch(transactions, transaction, state, now_ms, start_ms, fresh_id)


def by_the_coordinator(
    transactions: Transactions, transaction: Transaction, now_ms: int, fresh_id: int = NO_PRODUCER_ID
) -> StateRecord:
    """An abort that the producer does not know of: the next epoch fences it, whatever protocol it speaks.

    NeedsProducerId as above.
    """
    epoch = transaction.producer_epoch
    if transactions.transaction_version >= BUMPS_EPOCH and epoch < HIGHEST_EPOCH:
        return _with_next_epoch(transactions, transaction, State.PREPARE_ABORT, now_ms, None, fresh_id)
    return transaction.record(
        State.PREPARE_ABORT,
        now_ms,
        transactions.log_version,
        producer_epoch=min(epoch + 1, HIGHEST_EPOCH),
        client_version=0,
    )


def _with_next_epoch(
    transactions: Transactions,
    transaction: Transaction,
    state: State,
    now_ms: int,
    start_ms: int | None,
    fresh_id: int,
) -> StateRecord:
    epoch = transaction.producer_epoch
    return transaction.record(
        state,
        now_ms,
        transactions.log_version,
        producer_epoch=epoch + 1,
        next_producer_id=taken(fresh_id) if is_exhausted(epoch) else NO_PRODUCER_ID,
        start_ms=start_ms,
        client_version=BUMPS_EPOCH,
    )


def decided(transactions: Transactions, transaction: Transaction, response: R, decision: StateRecord) -> Result[R]:
    """`decision` and its answer; the markers follow when it is committed."""

    def written(reason: ErrorCode) -> None:
        if reason is ErrorCode.NONE:
            transactions.write_markers([transaction])

    return Result(response, [decision], written)


def identity_after(transaction: Transaction) -> tuple[int, int]:
    """The producer id and epoch with which the producer goes on when the transaction is complete."""
    if transaction.next_producer_id != NO_PRODUCER_ID:
        return transaction.next_producer_id, 0
    return transaction.producer_id, transaction.producer_epoch


def completed(transactions: Transactions, transaction: Transaction, now_ms: int) -> StateRecord:
    """Every partition has its marker."""
    producer_id, producer_epoch = identity_after(transaction)
    return transaction.record(
        COMPLETE[transaction.state],
        now_ms,
        transactions.log_version,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partitions=NO_PARTITIONS,
    )
