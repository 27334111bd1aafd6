"""EndTxn: commit or abort. What is asked for a second time is answered as the first time, and nothing is ended twice.

In transaction protocol 1 the epoch stays the same from transaction to transaction, so a repeated request is one that
asks for what has been done. In protocol 2 (EndTxn 5) the end gives the producer the next epoch: a repeated request has
the epoch before, and one with the epoch of now speaks of the next transaction, which may be aborted before it begins.
"""

from enum import Enum, auto

from quire.coordinators.runtime.result import Result
from quire.coordinators.transaction.ending import by_its_producer, decided, identity_after
from quire.coordinators.transaction.producer_epochs import HIGHEST_EPOCH, NO_PRODUCER_ID, fenced
from quire.coordinators.transaction.states import NAMES, State
from quire.coordinators.transaction.transaction import BUMPS_EPOCH, Transaction
from quire.coordinators.transaction.transactions import Transactions
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from quire.protocol.messages.transaction_records import TransactionLogValue

_KNOWS_FENCED = 2
"""The version from which on clients know PRODUCER_FENCED."""
_PROTOCOL_2 = 5
"""The version from which on EndTxn speaks transaction protocol 2."""


class Outcome(Enum):
    END = auto()
    """The transaction ends now."""
    DONE = auto()
    """That is what has been done: the answer was lost, or the request was sent twice."""
    INVALID = auto()
    """There is nothing to be ended so."""
    FENCED = auto()
    """Another, or the coordinator, has ended it otherwise."""


COMMIT, ABORT = True, False
REPEATED, NEW = True, False

PROTOCOL_1: dict[tuple[State, bool], Outcome] = {
    (State.ONGOING, COMMIT): Outcome.END,
    (State.ONGOING, ABORT): Outcome.END,
    (State.COMPLETE_COMMIT, COMMIT): Outcome.DONE,
    (State.COMPLETE_COMMIT, ABORT): Outcome.INVALID,
    (State.COMPLETE_ABORT, COMMIT): Outcome.INVALID,
    (State.COMPLETE_ABORT, ABORT): Outcome.DONE,
    (State.EMPTY, COMMIT): Outcome.INVALID,
    (State.EMPTY, ABORT): Outcome.INVALID,
}
"""By state and what is asked for."""

PROTOCOL_2: dict[tuple[State, bool, bool], Outcome] = {
    (State.ONGOING, COMMIT, NEW): Outcome.END,
    (State.ONGOING, COMMIT, REPEATED): Outcome.FENCED,
    (State.ONGOING, ABORT, NEW): Outcome.END,
    (State.ONGOING, ABORT, REPEATED): Outcome.FENCED,
    (State.COMPLETE_COMMIT, COMMIT, NEW): Outcome.INVALID,
    (State.COMPLETE_COMMIT, COMMIT, REPEATED): Outcome.DONE,
    (State.COMPLETE_COMMIT, ABORT, NEW): Outcome.END,
    (State.COMPLETE_COMMIT, ABORT, REPEATED): Outcome.INVALID,
    (State.COMPLETE_ABORT, COMMIT, NEW): Outcome.INVALID,
    # The transaction timed out just before its producer wanted to commit it.
    (State.COMPLETE_ABORT, COMMIT, REPEATED): Outcome.FENCED,
    (State.COMPLETE_ABORT, ABORT, NEW): Outcome.END,
    (State.COMPLETE_ABORT, ABORT, REPEATED): Outcome.DONE,
    (State.EMPTY, COMMIT, NEW): Outcome.INVALID,
    (State.EMPTY, COMMIT, REPEATED): Outcome.FENCED,
    (State.EMPTY, ABORT, NEW): Outcome.END,
    (State.EMPTY, ABORT, REPEATED): Outcome.FENCED,
}
"""By state, what is asked for, and whether with the epoch before that of now."""


def end_txn(
    transactions: Transactions, request: EndTxnRequest, api_version: int, now_ms: int, fresh_id: int
) -> Result[EndTxnResponse]:
    """ApiError for what is refused; NeedsProducerId where `fresh_id` is needed and not given."""
    if not request.transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    transaction = transactions.get(request.transactional_id)
    if transaction is None:
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{request.transactional_id} is not known: initialize the producer"
        )
    bumps_epoch = api_version >= _PROTOCOL_2 and transactions.transaction_version >= BUMPS_EPOCH
    outcome = (_protocol_2 if bumps_epoch else _protocol_1)(transaction, request)
    if outcome is not Outcome.END:
        return _not_ended(transaction, request, api_version, outcome)
    decision = by_its_producer(transactions, transaction, request.committed, bumps_epoch, now_ms, fresh_id)
    value = decision.value
    assert isinstance(value, TransactionLogValue)
    if value.next_producer_id != NO_PRODUCER_ID:
        response = _response(api_version, value.next_producer_id, 0)
    else:
        response = _response(api_version, value.producer_id, value.producer_epoch)
    return decided(transactions, transaction, response, decision)


def _not_ended(
    transaction: Transaction, request: EndTxnRequest, api_version: int, outcome: Outcome
) -> Result[EndTxnResponse]:
    if outcome is Outcome.FENCED:
        raise fenced(
            f"{request.transactional_id} has been taken over or has timed out: close this producer",
            is_old_version=api_version < _KNOWS_FENCED,
        )
    if outcome is Outcome.INVALID:
        asked = "committed" if request.committed else "aborted"
        raise ApiError(
            ErrorCode.INVALID_TXN_STATE,
            f"{request.transactional_id} is {NAMES[transaction.state]}: there is nothing to be {asked}",
        )
    assert outcome is Outcome.DONE
    return Result(_response(api_version, *identity_after(transaction)))


def _protocol_1(transaction: Transaction, request: EndTxnRequest) -> Outcome:
    _check_producer_id(transaction, request)
    if request.producer_epoch != transaction.producer_epoch:
        return Outcome.FENCED
    _check_not_ending(transaction)
    return PROTOCOL_1[transaction.state, request.committed]


def _protocol_2(transaction: Transaction, request: EndTxnRequest) -> Outcome:
    # First of all: the producer may already go by the id and epoch that it will have when the end is complete.
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
    # The highest epoch is given to nobody, neither now nor again.
    if given not in (epoch, epoch - 1) or epoch == HIGHEST_EPOCH:
        return Outcome.FENCED
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
