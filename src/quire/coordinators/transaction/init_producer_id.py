"""InitProducerId with a transactional id: who may use that name from now on, and who no longer may.

A producer that starts is given the next epoch, and what older ones still send is refused: they are fenced. If one of
them left a transaction open it is aborted first, and the new producer is told to come back (CONCURRENT_TRANSACTIONS).

A producer that has lost its way says which id and epoch it had and goes on with the next one (KIP-360), unless another
has taken its place. If the answer to that was lost it asks again, and is given the same epoch again.
"""

from quire.config.broker_config import BrokerConfig
from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.runtime.result import Result
from quire.coordinators.transaction.ending import by_the_coordinator, decided
from quire.coordinators.transaction.producer_epochs import (
    HIGHEST_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    fenced,
    is_exhausted,
    taken,
)
from quire.coordinators.transaction.states import State
from quire.coordinators.transaction.transaction import NO_TIMESTAMP, Transaction
from quire.coordinators.transaction.transactions import Transactions
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.transaction_records import TransactionLogValue

_KNOWS_FENCED = 4
"""The version from which on clients know PRODUCER_FENCED."""

Identity = tuple[int, int]
"""Producer id and epoch."""


def init_producer_id(
    transactions: Transactions, request: InitProducerIdRequest, api_version: int, now_ms: int, fresh_id: int
) -> Result[InitProducerIdResponse]:
    """ApiError for what is refused; NeedsProducerId where `fresh_id` is needed and not given."""
    transactional_id = _checked(request, transactions.surroundings.config)
    expected = _expected(request)
    transaction = transactions.get(transactional_id)
    if transaction is None:
        transaction = Transaction(transactional_id, taken(fresh_id))
        return _given(transaction, request, 0, NO_EPOCH, now_ms, transactions.log_version)
    if transaction.is_ending:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, "the last transaction is being ended: try again")
    if expected is not None and not _may_go_on(transaction, expected):
        raise fenced(
            f"{transactional_id} has been taken over by a newer producer: close this one",
            is_old_version=api_version < _KNOWS_FENCED,
        )
    if transaction.state is State.ONGOING:
        decision = by_the_coordinator(transactions, transaction, now_ms, fresh_id)
        response = InitProducerIdResponse(
            error_code=ErrorCode.CONCURRENT_TRANSACTIONS, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH
        )
        return decided(transactions, transaction, response, decision)
    return _next_epoch(transactions, transaction, request, expected, now_ms, fresh_id)


def _checked(request: InitProducerIdRequest, config: BrokerConfig) -> str:
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
    """The id and epoch that the producer says it had."""
    has_id, has_epoch = request.producer_id != NO_PRODUCER_ID, request.producer_epoch != NO_EPOCH
    if has_id != has_epoch:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a producer id and its epoch are given together or not at all")
    return (request.producer_id, request.producer_epoch) if has_id else None


def _may_go_on(transaction: Transaction, expected: Identity) -> bool:
    """Whether the producer that had this id and epoch is still the last one under its name.

    While a transaction is open it must be exactly that one's: else whoever comes late would end it for another. (Kafka
    ends it, and refuses afterwards.)
    """
    if expected == (transaction.producer_id, transaction.producer_epoch):
        return True
    return transaction.state is not State.ONGOING and _is_repeated(transaction, expected)


def _is_repeated(transaction: Transaction, expected: Identity) -> bool:
    """Whether the producer was given the next epoch before, and has not heard of it."""
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
    fresh_id: int,
) -> Result[InitProducerIdResponse]:
    epoch = transaction.producer_epoch
    log_version = transactions.log_version
    if expected is not None and expected != (transaction.producer_id, epoch):
        return _given(transaction, request, epoch, transaction.last_epoch, now_ms, log_version)
    continues_from = NO_EPOCH if expected is None else epoch
    if is_exhausted(epoch):
        return _given(transaction, request, 0, continues_from, now_ms, log_version, producer_id=taken(fresh_id))
    return _given(transaction, request, epoch + 1, continues_from, now_ms, log_version)


def _given(
    transaction: Transaction,
    request: InitProducerIdRequest,
    epoch: int,
    continues_from: int,
    now_ms: int,
    log_version: int,
    producer_id: int | None = None,
) -> Result[InitProducerIdResponse]:
    record: StateRecord = transaction.record(
        State.EMPTY,
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
    return Result(response, [record])
