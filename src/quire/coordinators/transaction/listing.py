"""DescribeTransactions and ListTransactions."""

from quire.coordinators.transaction.transaction import Transaction
from quire.coordinators.transaction.transaction_state import NAMES, STATES_BY_NAME
from quire.coordinators.transaction.transactions import Transactions
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.describe_transactions import TopicData
from quire.protocol.messages.describe_transactions import TransactionState as Described
from quire.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from quire.protocol.messages.list_transactions import TransactionState as Listed


def describe(transactions: Transactions, transactional_id: str) -> Described:
    """One transactional id of a request. Errors are in the result."""
    if not transactional_id:
        return Described(transactional_id=transactional_id, error_code=ErrorCode.INVALID_REQUEST)
    transaction = transactions.get(transactional_id)
    if transaction is None:
        return Described(transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    return Described(
        transactional_id=transactional_id,
        transaction_state=NAMES[transaction.state],
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[TopicData(topic=topic, partitions=list(ids)) for topic, ids in transaction.partitions.items()],
    )


def list_transactions(
    transactions: Transactions, request: ListTransactionsRequest, now_ms: int
) -> ListTransactionsResponse:
    """The transactions of one shard. A filter that is not given matches all; `id_pattern` has the filter by id."""
    states = [STATES_BY_NAME[name] for name in request.state_filters if name in STATES_BY_NAME]
    producer_ids = frozenset(request.producer_id_filters)

    def is_wanted(transaction: Transaction) -> bool:
        if request.state_filters and transaction.state not in states:
            return False
        if producer_ids and transaction.producer_id not in producer_ids:
            return False
        return request.duration_filter < 0 or now_ms - transaction.start_ms > request.duration_filter

    return ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in STATES_BY_NAME],
        transaction_states=[
            Listed(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=NAMES[transaction.state],
            )
            for transaction in transactions
            if is_wanted(transaction)
        ],
    )
