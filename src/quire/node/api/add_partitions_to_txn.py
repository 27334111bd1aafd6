"""AddPartitionsToTxn: adds partitions to a transaction before its producer writes to them, so that it also ends there.

Clients send versions 0 to 3, for one transaction. Brokers send versions 4 and 5, for several transactions: to add the
partitions that a producer writes to, or only to verify that they belong to its transaction.

Versions on broker listeners:
    0  the first version
    1  a throttled client gets its response at once and waits by itself (KIP-219)
    2  a producer with an old epoch gets PRODUCER_FENCED (KIP-588)
    3  flexible encoding
    4  sent by brokers, for several transactions, also to verify only (KIP-890)
    5  the sender knows TRANSACTION_ABORTABLE (KIP-890)
"""

from functools import partial
from typing import TYPE_CHECKING

from quire.coordinators.transaction.add_partitions import partition_errors
from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import CLUSTER, Context
from quire.node.group_requests import caller_of
from quire.node.slices import Work
from quire.node.transaction_requests import run_in_transaction
from quire.pending import Pending, completed, gather
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import is_internal
from quire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from quire.node.node import Node

FIRST_VERSION_OF_BROKERS = 4

FIRST_RETRY_MS = 1.0


def handle(node: "Node", context: Context, request: AddPartitionsToTxnRequest) -> Work[AddPartitionsToTxnResponse]:
    if context.api_version < FIRST_VERSION_OF_BROKERS:
        return _of_client(node, context, request)
    if not node.authorizer.allows(context, AclOperation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "only brokers may name several transactions")
    return _of_brokers(node, context, request)


def refuse(request: AddPartitionsToTxnRequest, error: ApiError) -> AddPartitionsToTxnResponse:
    if request.transactions:
        return AddPartitionsToTxnResponse(
            error_code=error.code,
            results_by_transaction=[_refused(transaction, error.code) for transaction in request.transactions],
        )
    return AddPartitionsToTxnResponse(
        error_code=error.code,
        results_by_topic_v3_and_below=partition_errors(request.v3_and_below_topics, error.code),
    )


def _of_client(node: "Node", context: Context, request: AddPartitionsToTxnRequest) -> Work[AddPartitionsToTxnResponse]:
    """Tries again for a short time while the markers of the producer's last transaction are not committed.

    With replicas that takes a few milliseconds, and clients would wait for 20 ms or more before they retry.
    """
    deadline_ms = node.clock.monotonic_ms() + node.config.get_int("add.partitions.to.txn.retry.backoff.max.ms")
    wait_ms = FIRST_RETRY_MS
    while True:
        response = yield _once(node, context, request)
        if isinstance(response, ApiError):
            raise response
        if not _is_being_ended(response) or node.clock.monotonic_ms() + wait_ms > deadline_ms:
            return response  # type: ignore[no-any-return]
        waited: Pending[None] = Pending()
        node.clock.call_later(wait_ms, partial(waited.complete, None))
        yield waited
        wait_ms *= 2


def _is_being_ended(response: AddPartitionsToTxnResponse) -> bool:
    return any(
        result.partition_error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        for topic in response.results_by_topic_v3_and_below
        for result in topic.results_by_partition
    )


def _once(
    node: "Node", context: Context, request: AddPartitionsToTxnRequest
) -> Pending[AddPartitionsToTxnResponse | ApiError]:
    topics = request.v3_and_below_topics
    denied = {topic.name: None for topic in topics if not _may_write(node, context, topic.name)}
    if denied:
        # All or nothing: the partitions that could have been added get OPERATION_NOT_ATTEMPTED.
        results = [
            *partition_errors([each for each in topics if each.name in denied], ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            *partition_errors([each for each in topics if each.name not in denied], ErrorCode.OPERATION_NOT_ATTEMPTED),
        ]
        return completed(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))
    caller = caller_of(context)
    return run_in_transaction(
        node,
        context,
        request.v3_and_below_transactional_id,
        lambda machine, now_ms: machine.add_partitions(request, caller, now_ms),
    )


def _may_write(node: "Node", context: Context, topic: str) -> bool:
    is_own = context.principal is CLUSTER
    return (is_own or not is_internal(topic)) and node.authorizer.allows(
        context, AclOperation.WRITE, Resource.TOPIC, topic
    )


def _of_brokers(node: "Node", context: Context, request: AddPartitionsToTxnRequest) -> Work[AddPartitionsToTxnResponse]:
    asked = []
    for transaction in request.transactions:
        asked.append(_of_broker(node, context, transaction))
        yield None
    results = yield gather(asked)
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _of_broker(
    node: "Node", context: Context, transaction: AddPartitionsToTxnTransaction
) -> Pending[AddPartitionsToTxnResult]:
    caller = caller_of(context)
    try:
        answer = run_in_transaction(
            node,
            context,
            transaction.transactional_id,
            lambda machine, now_ms: machine.add_partitions_of(transaction, caller, now_ms),
        )
    except ApiError as error:
        return completed(_refused(transaction, error.code))
    return answer.then(lambda result: _refused(transaction, result.code) if isinstance(result, ApiError) else result)


def _refused(transaction: AddPartitionsToTxnTransaction, code: ErrorCode) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id, topic_results=partition_errors(transaction.topics, code)
    )
