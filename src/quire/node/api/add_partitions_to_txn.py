"""AddPartitionsToTxn: a transaction is about to write to partitions, and has to end in them.

Clients ask for one transaction (versions 0 to 3); brokers for several, to add partitions on behalf of a producer that
writes to them, or only to have it confirmed that they belong to the transaction (versions 4 and 5).
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, Operation, Resource
from quire.node.context import CLUSTER, Context
from quire.node.group_requests import caller_of
from quire.node.slices import Work
from quire.node.transaction_requests import run_in_transaction
from quire.pending import Pending, completed, gather
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import is_internal
from quire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from quire.node.node import Node

FIRST_VERSION_OF_BROKERS = 4

Answer = Pending[AddPartitionsToTxnResponse | ApiError]


def handle(
    node: "Node", context: Context, request: AddPartitionsToTxnRequest
) -> Answer | Work[AddPartitionsToTxnResponse]:
    if context.api_version < FIRST_VERSION_OF_BROKERS:
        return _of_client(node, context, request)
    if not node.authorizer.allows(context, Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "only brokers ask for several transactions at once")
    return _of_brokers(node, context, request)


def refuse(request: AddPartitionsToTxnRequest, error: ApiError) -> AddPartitionsToTxnResponse:
    if request.transactions:
        return AddPartitionsToTxnResponse(
            error_code=error.code,
            results_by_transaction=[_refused(transaction, error.code) for transaction in request.transactions],
        )
    return AddPartitionsToTxnResponse(
        error_code=error.code,
        results_by_topic_v3_and_below=_with_error(request.v3_and_below_topics, error.code),
    )


def _of_client(node: "Node", context: Context, request: AddPartitionsToTxnRequest) -> Answer:
    topics = request.v3_and_below_topics
    denied = {topic.name: None for topic in topics if not _may_write(node, context, topic.name)}
    if denied:
        # All or nothing: what could have been added is told that it was not tried.
        results = [
            *_with_error([topic for topic in topics if topic.name in denied], ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            *_with_error([topic for topic in topics if topic.name not in denied], ErrorCode.OPERATION_NOT_ATTEMPTED),
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
        context, Operation.WRITE, Resource.TOPIC, topic
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
        transactional_id=transaction.transactional_id, topic_results=_with_error(transaction.topics, code)
    )


def _with_error(topics: list[AddPartitionsToTxnTopic], code: ErrorCode) -> list[AddPartitionsToTxnTopicResult]:
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
