"""EndTxn: commits or aborts a transaction. A repeated request gets the first response, and ends nothing twice.

With transaction protocol 1 the epoch stays the same from transaction to transaction, so a request is a repeated one if
it asks for what has already been done. With protocol 2 (EndTxn 5) the end gives the producer the next epoch. Then a
repeated request has the previous epoch. A request with the current epoch means the next transaction, which may be
aborted before it begins.
"""

from enum import Enum, auto

from quire.coordinators.runtime.result import CoordinatorResult
from quire.coordinators.transaction.ending import decision_result, next_identity, producer_decision
from quire.coordinators.transaction.producer_epochs import HIGHEST_EPOCH, NO_PRODUCER_ID, fenced
from quire.coordinators.transaction.transaction import BUMPS_EPOCH, Transaction
from quire.coordinators.transaction.transaction_state import NAMES, TransactionState
from quire.coordinators.transaction.transactions import Transactions
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from quire.protocol.messages.transaction_records import TransactionLogValue

_KNOWS_FENCED = 2
"""The first version whose clients know PRODUCER_FENCED."""
_PROTOCOL_2 = 5
"""The first version with transaction protocol 2."""


class EndTxnAction(Enum):
    END = auto()
    """The transaction ends now."""
    DONE = auto()
    """The transaction has ended in this way before: the response was lost, or the request was sent twice."""
    INVALID = auto()
    """No transaction can end in this way."""
    FENCED = auto()
    """Another producer or the coordinator has ended it in the other way."""


COMMIT, ABORT = True, False
REPEATED, NEW = True, False

PROTOCOL_1: dict[tuple[TransactionState, bool], EndTxnAction] = {
    (TransactionState.ONGOING, COMMIT): EndTxnAction.END,
    (TransactionState.ONGOING, ABORT): EndTxnAction.END,
    (TransactionState.COMPLETE_COMMIT, COMMIT): EndTxnAction.DONE,
    (TransactionState.COMPLETE_COMMIT, ABORT): EndTxnAction.INVALID,
    (TransactionState.COMPLETE_ABORT, COMMIT): EndTxnAction.INVALID,
    (TransactionState.COMPLETE_ABORT, ABORT): EndTxnAction.DONE,
    (TransactionState.EMPTY, COMMIT): EndTxnAction.INVALID,
    (TransactionState.EMPTY, ABORT): EndTxnAction.INVALID,
}
"""By state and requested end."""

PROTOCOL_2: dict[tuple[TransactionState, bool, bool], EndTxnAction] = {
    (TransactionState.ONGOING, COMMIT, NEW): EndTxnAction.END,
    (TransactionState.ONGOING, COMMIT, REPEATED): EndTxnAction.FENCED,
    (TransactionState.ONGOING, ABORT, NEW): EndTxnAction.END,
    (TransactionState.ONGOING, ABORT, REPEATED): EndTxnAction.FENCED,
    (TransactionState.COMPLETE_COMMIT, COMMIT, NEW): EndTxnAction.INVALID,
    (TransactionState.COMPLETE_COMMIT, COMMIT, REPEATED): EndTxnAction.DONE,
    (TransactionState.COMPLETE_COMMIT, ABORT, NEW): EndTxnAction.END,
    (TransactionState.COMPLETE_COMMIT, ABORT, REPEATED): EndTxnAction.INVALID,
    (TransactionState.COMPLETE_ABORT, COMMIT, NEW): EndTxnAction.INVALID,
    # The transaction timed out just before its producer wanted to commit it.
    (TransactionState.COMPLETE_ABORT, COMMIT, REPEATED): EndTxnAction.FENCED,
    (TransactionState.COMPLETE_ABORT, ABORT, NEW): EndTxnAction.END,
    (TransactionState.COMPLETE_ABORT, ABORT, REPEATED): EndTxnAction.DONE,
    (TransactionState.EMPTY, COMMIT, NEW): EndTxnAction.INVALID,
    (TransactionState.EMPTY, COMMIT, REPEATED): EndTxnAction.FENCED,
    (TransactionState.EMPTY, ABORT, NEW): EndTxnAction.END,
    (TransactionState.EMPTY, ABORT, REPEATED): EndTxnAction.FENCED,
}
"""By state, requested end, and whether the request has the previous epoch."""


def end_txn(
    transactions: Transactions, request: EndTxnRequest, api_version: int, now_ms: int, new_producer_id: int
) -> CoordinatorResult[EndTxnResponse]:
    """ApiError if it is refused; NeedsProducerId if a new producer id is needed and not given."""
    if not request.transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    transaction = transactions.get(request.transactional_id)
    if transaction is None:
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{request.transactional_id} is not known: initialize the producer"
        )
    bumps_epoch = api_version >= _PROTOCOL_2 and transactions.transaction_version >= BUMPS_EPOCH
    action = (_protocol_2 if bumps_epoch else _protocol_1)(transaction, request)
    if action is not EndTxnAction.END:
        return _not_ended(transaction, request, api_version, action)
    decision = producer_decision(transactions, transaction, request.committed, bumps_epoch, now_ms, new_producer_id)
    value = decision.value
    assert isinstance(value, TransactionLogValue)
    if value.next_producer_id != NO_PRODUCER_ID:
        response = _response(api_version, value.next_producer_id, 0)
    else:
        response = _response(api_version, value.producer_id, value.producer_epoch)
    return decision_result(transactions, transaction, response, decision)


def _not_ended(
    transaction: Transaction, request: EndTxnRequest, api_version: int, action: EndTxnAction
) -> CoordinatorResult[EndTxnResponse]:
    if action is EndTxnAction.FENCED:
        raise fenced(
            f"{request.transactional_id} has been taken over or has timed out: close this producer",
            is_old_version=api_version < _KNOWS_FENCED,
        )
    if action is EndTxnAction.INVALID:
        asked = "committed" if request.committed else "aborted"
        raise ApiError(
            ErrorCode.INVALID_TXN_STATE,
            f"{request.transactional_id} is {NAMES[transaction.state]}: there is nothing to be {asked}",
        )
    assert action is EndTxnAction.DONE
    return CoordinatorResult(_response(api_version, *next_identity(transaction)))


def _protocol_1(transaction: Transaction, request: EndTxnRequest) -> EndTxnAction:
    _check_producer_id(transaction, request)
    if request.producer_epoch != transaction.producer_epoch:
        return EndTxnAction.FENCED
    _check_not_ending(transaction)
    return PROTOCOL_1[transaction.state, request.committed]


def _protocol_2(transaction: Transaction, request: EndTxnRequest) -> EndTxnAction:
    # Checked first: the producer may already use the id and epoch that it gets when the end is complete.
    _check_not_ending(transaction)
    given, epoch = request.producer_epoch, transaction.producer_epoch
    if (
        given == HIGHEST_EPOCH - 1
        and epoch == 0
        and request.producer_id == transaction.previous_producer_id
        and request.producer_id != transaction.producer_id
    ):
        return PROTOCOL_2[transaction.state, request.committed, REPEATED]
    _check_producer_id(transaction, request)
    # No producer ever gets the highest epoch.
    if given not in (epoch, epoch - 1) or epoch == HIGHEST_EPOCH:
        return EndTxnAction.FENCED
    return PROTOCOL_2[transaction.state, request.committed, given != epoch]


def _check_producer_id(transaction: Transaction, request: EndTxnRequest) -> None:
    if request.producer_id != transaction.producer_id:
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"producer id {request.producer_id} is not that of {transaction.transactional_id}: initialize the producer",
        )


def _check_not_ending(transaction: Transaction) -> None:
    if transaction.is_ending:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, "the transaction is being ended: try again")


def _response(api_version: int, producer_id: int, producer_epoch: int) -> EndTxnResponse:
    if api_version < _PROTOCOL_2:
        return EndTxnResponse()
    return EndTxnResponse(producer_id=producer_id, producer_epoch=producer_epoch)
