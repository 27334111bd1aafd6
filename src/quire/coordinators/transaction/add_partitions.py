"""AddPartitionsToTxn and AddOffsetsToTxn: a transaction begins or grows, before records go to its partitions.

Clients of protocol 1 send these requests themselves (versions 0 to 3). For clients of protocol 2 the broker that
appends their records sends them (versions 4 and 5). For clients of protocol 1 it verifies with `verify_only` that the
partition is part of the transaction.

The coordinator accepts only partitions that it knows. So they exist for every later coordinator too, and a partition
that is unknown when markers are sent has been deleted.
"""

from collections.abc import Sequence

from quire.coordinators.runtime.record import StateRecord
from quire.coordinators.runtime.result import CoordinatorResult
from quire.coordinators.transaction.producer_epochs import HIGHEST_EPOCH
from quire.coordinators.transaction.transaction import BUMPS_EPOCH, NO_PARTITIONS, Partitions, Transaction
from quire.coordinators.transaction.transaction_state import TransactionState
from quire.coordinators.transaction.transactions import Transactions
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import GROUP_OFFSETS
from quire.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from quire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

# Module constants, because a lookup of an enum member through its class is slow.
_ONGOING = TransactionState.ONGOING
_NONE = ErrorCode.NONE

_KNOWS_FENCED = 2
"""The first version of both requests whose clients know PRODUCER_FENCED."""
_FROM_BROKERS = 4
"""The first version of AddPartitionsToTxn that only brokers send."""

Topics = Sequence[AddPartitionsToTxnTopic]


def add_partitions(
    transactions: Transactions, request: AddPartitionsToTxnRequest, api_version: int, now_ms: int
) -> CoordinatorResult[AddPartitionsToTxnResponse]:
    """From clients, in versions 0 to 3."""
    results, records = _add_topics(
        transactions,
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        request.v3_and_below_topics,
        False,
        api_version,
        now_ms,
    )
    return CoordinatorResult(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results), records)


def add_partitions_of(
    transactions: Transactions, request: AddPartitionsToTxnTransaction, api_version: int, now_ms: int
) -> CoordinatorResult[AddPartitionsToTxnResult]:
    """One transaction of a broker's request, in versions 4 and 5."""
    results, records = _add_topics(
        transactions,
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.topics,
        request.verify_only,
        api_version,
        now_ms,
    )
    result = AddPartitionsToTxnResult(transactional_id=request.transactional_id, topic_results=results)
    return CoordinatorResult(result, records)


def _add_topics(
    transactions: Transactions,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    topics: Topics,
    verify_only: bool,
    api_version: int,
    now_ms: int,
) -> tuple[list[AddPartitionsToTxnTopicResult], list[StateRecord]]:
    """The result of each partition, and the records to write."""
    if not transactions.has_partitions(topics):
        return _unknown_partitions(transactions, topics), []
    try:
        transaction = _found(transactions, transactional_id, producer_id, producer_epoch, verify_only)
    except ApiError as error:
        is_old = api_version < _KNOWS_FENCED and error.code is ErrorCode.PRODUCER_FENCED
        return partition_errors(topics, ErrorCode.INVALID_PRODUCER_EPOCH if is_old else error.code), []
    if verify_only:
        return _verified(transaction, topics), []
    added = {topic.name: topic.partitions for topic in topics}
    if len(added) < len(topics):
        added = {name: [index for each in topics if each.name == name for index in each.partitions] for name in added}
    is_protocol_2 = api_version >= _FROM_BROKERS and transactions.transaction_version >= BUMPS_EPOCH
    records = _added(transactions, transaction, added, BUMPS_EPOCH if is_protocol_2 else 0, now_ms)
    return partition_errors(topics, _NONE), records


def add_offsets(
    transactions: Transactions,
    request: AddOffsetsToTxnRequest,
    api_version: int,
    now_ms: int,
    offsets_partition: int,
) -> CoordinatorResult[AddOffsetsToTxnResponse]:
    """`offsets_partition` is the partition of `__consumer_offsets` that has the group. ApiError if it is refused."""
    if not transactions.has_partition(GROUP_OFFSETS, offsets_partition):
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{GROUP_OFFSETS} is about to be created: try again")
    try:
        transaction = _found(transactions, request.transactional_id, request.producer_id, request.producer_epoch)
    except ApiError as error:
        if api_version < _KNOWS_FENCED and error.code is ErrorCode.PRODUCER_FENCED:
            raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message) from None
        raise
    added = {GROUP_OFFSETS: [offsets_partition]}
    return CoordinatorResult(AddOffsetsToTxnResponse(), _added(transactions, transaction, added, 0, now_ms))


def partition_errors(topics: Topics, code: ErrorCode) -> list[AddPartitionsToTxnTopicResult]:
    """The same code for all partitions."""
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def _found(
    transactions: Transactions, transactional_id: str, producer_id: int, epoch: int, verify_only: bool = False
) -> Transaction:
    """The transaction, if this producer may change or verify it."""
    if not transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    transaction = transactions.get(transactional_id)
    if transaction is None:
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{transactional_id} is not known: initialize the producer"
        )
    is_ending = transaction.is_ending
    if is_ending and not verify_only:
        # Checked first: the producer may already use the id and epoch that it gets when the end is complete.
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, "the last transaction is being ended: try again")
    if producer_id != transaction.producer_id:
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"producer id {producer_id} is not that of {transactional_id}: initialize the producer",
        )
    if epoch != transaction.producer_epoch or epoch == HIGHEST_EPOCH:
        raise ApiError(
            ErrorCode.PRODUCER_FENCED, f"{transactional_id} has been taken over by a newer producer: close this one"
        )
    if is_ending:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, "the last transaction is being ended: try again")
    return transaction


def _added(
    transactions: Transactions, transaction: Transaction, added: Partitions, client_version: int, now_ms: int
) -> list[StateRecord]:
    """The record that adds these partitions; none if the transaction has them."""
    is_open = transaction.state is _ONGOING
    current = transaction.partitions if is_open else NO_PARTITIONS
    partitions = _union(current, added)
    if partitions is current:
        return []
    record = transaction.record(
        _ONGOING,
        now_ms,
        transactions.log_version,
        partitions=partitions,
        start_ms=None if is_open else now_ms,
        client_version=client_version,
    )
    return [record]


def _union(current: Partitions, added: Partitions) -> Partitions:
    """`current` itself if nothing is new."""
    union: dict[str, Sequence[int]] = {}
    for topic, indexes in added.items():
        known = current.get(topic, ())
        if len(indexes) == 1 and not known:
            union[topic] = indexes
            continue
        together = list(dict.fromkeys((*known, *indexes)))
        if len(together) > len(known):
            union[topic] = together
    return {**current, **union} if union else current


def _verified(transaction: Transaction, topics: Topics) -> list[AddPartitionsToTxnTopicResult]:
    results = partition_errors(topics, _NONE)
    for topic in results:
        known = frozenset(transaction.partitions.get(topic.name, ()))
        for partition in topic.results_by_partition:
            if partition.partition_index not in known:
                partition.partition_error_code = ErrorCode.TRANSACTION_ABORTABLE
    return results


def _unknown_partitions(transactions: Transactions, topics: Topics) -> list[AddPartitionsToTxnTopicResult]:
    """All or none: if one partition is unknown, no other is added."""
    results = partition_errors(topics, ErrorCode.OPERATION_NOT_ATTEMPTED)
    for topic in results:
        for partition in topic.results_by_partition:
            if not transactions.has_partition(topic.name, partition.partition_index):
                partition.partition_error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return results
