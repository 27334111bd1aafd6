"""InitProducerId with a transactional id: gives a producer its id and epoch, and fences its predecessors.

A producer that starts gets the next epoch, so requests of older producers are refused. If one of them left a
transaction open, the coordinator aborts it first, and the new producer must retry (CONCURRENT_TRANSACTIONS).

A producer that recovers from an error sends its current id and epoch and gets the next epoch (KIP-360), unless another
producer has replaced it. If that response was lost, the repeated request gets the same epoch again.
"""

from quire.config.broker_config import BrokerConfig
from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.runtime.result import CoordinatorResult
from quire.coordinators.transaction.ending import coordinator_abort, decision_result
from quire.coordinators.transaction.producer_epochs import (
    HIGHEST_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    fenced,
    is_exhausted,
    require_producer_id,
)
from quire.coordinators.transaction.transaction import NO_TIMESTAMP, Transaction
from quire.coordinators.transaction.transaction_state import TransactionState
from quire.coordinators.transaction.transactions import Transactions
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.transaction_records import TransactionLogValue

_KNOWS_FENCED = 4
"""The first version whose clients know PRODUCER_FENCED."""

Identity = tuple[int, int]
"""Producer id and epoch."""


def init_producer_id(
    transactions: Transactions, request: InitProducerIdRequest, api_version: int, now_ms: int, new_producer_id: int
) -> CoordinatorResult[InitProducerIdResponse]:
    """ApiError if it is refused; NeedsProducerId if a new producer id is needed and not given."""
    transactional_id = _checked_id(request, transactions.environment.config)
    expected = _expected(request)
    transaction = transactions.get(transactional_id)
    if transaction is None:
        transaction = Transaction(transactional_id, require_producer_id(new_producer_id))
        return _initialized(transaction, request, 0, NO_EPOCH, now_ms, transactions.log_version)
    if transaction.is_ending:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, "the last transaction is being ended: try again")
    if expected is not None and not _may_continue(transaction, expected):
        raise fenced(
            f"{transactional_id} has been taken over by a newer producer: close this one",
            is_old_version=api_version < _KNOWS_FENCED,
        )
    if transaction.state is TransactionState.ONGOING:
        decision = coordinator_abort(transactions, transaction, now_ms, new_producer_id)
        response = InitProducerIdResponse(
            error_code=ErrorCode.CONCURRENT_TRANSACTIONS, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH
        )
        return decision_result(transactions, transaction, response, decision)
    return _next_epoch(transactions, transaction, request, expected, now_ms, new_producer_id)


def _checked_id(request: InitProducerIdRequest, config: BrokerConfig) -> str:
    assert request.transactional_id is not None, "a producer without a transactional id has no coordinator"
    if not request.transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    if request.enable2_pc:
        raise ApiError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "two-phase commit with other systems is not supported"
        )
    if request.keep_prepared_txn:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "prepared transactions are not kept")
    longest_ms = config.get_int("transaction.max.timeout.ms")
    if not 0 < request.transaction_timeout_ms <= longest_ms:
        raise ApiError(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            f"a transaction timeout of {request.transaction_timeout_ms} ms is not between 1 and {longest_ms}: "
            "change transaction.timeout.ms of the producer, or transaction.max.timeout.ms of the brokers",
        )
    return request.transactional_id


def _expected(request: InitProducerIdRequest) -> Identity | None:
    """The id and epoch that the producer has, if it sent them."""
    has_id, has_epoch = request.producer_id != NO_PRODUCER_ID, request.producer_epoch != NO_EPOCH
    if has_id != has_epoch:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a producer id and its epoch are given together or not at all")
    return (request.producer_id, request.producer_epoch) if has_id else None


def _may_continue(transaction: Transaction, expected: Identity) -> bool:
    """Whether the producer with this id and epoch is still the latest one of its transactional id.

    While a transaction is open, id and epoch must be those of the transaction. Otherwise a late request would end the
    transaction of another producer. (Kafka ends it, and refuses the request afterwards.)
    """
    if expected == (transaction.producer_id, transaction.producer_epoch):
        return True
    return transaction.state is not TransactionState.ONGOING and _is_repeated(transaction, expected)


def _is_repeated(transaction: Transaction, expected: Identity) -> bool:
    """Whether the producer was given the current epoch before, and the response was lost."""
    producer_id, epoch = expected
    if epoch != transaction.last_epoch or transaction.producer_epoch == HIGHEST_EPOCH:
        return False
    return producer_id == transaction.producer_id or (
        producer_id == transaction.previous_producer_id and is_exhausted(epoch)
    )


def _next_epoch(
    transactions: Transactions,
    transaction: Transaction,
    request: InitProducerIdRequest,
    expected: Identity | None,
    now_ms: int,
    new_producer_id: int,
) -> CoordinatorResult[InitProducerIdResponse]:
    epoch = transaction.producer_epoch
    log_version = transactions.log_version
    if expected is not None and expected != (transaction.producer_id, epoch):
        return _initialized(transaction, request, epoch, transaction.last_epoch, now_ms, log_version)
    continues_from = NO_EPOCH if expected is None else epoch
    if is_exhausted(epoch):
        return _initialized(
            transaction,
            request,
            0,
            continues_from,
            now_ms,
            log_version,
            producer_id=require_producer_id(new_producer_id),
        )
    return _initialized(transaction, request, epoch + 1, continues_from, now_ms, log_version)


def _initialized(
    transaction: Transaction,
    request: InitProducerIdRequest,
    epoch: int,
    continues_from: int,
    now_ms: int,
    log_version: int,
    producer_id: int | None = None,
) -> CoordinatorResult[InitProducerIdResponse]:
    record: StateRecord = transaction.record(
        TransactionState.EMPTY,
        now_ms,
        log_version,
        producer_id=producer_id,
        producer_epoch=epoch,
        timeout_ms=request.transaction_timeout_ms,
        start_ms=NO_TIMESTAMP,
    )
    transaction.continues_from = continues_from
    value = record.value
    assert isinstance(value, TransactionLogValue)
    response = InitProducerIdResponse(producer_id=value.producer_id, producer_epoch=epoch)
    return CoordinatorResult(response, [record])
