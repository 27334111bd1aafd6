"""DescribeTransactions: the state of transactional ids, for administrators.

Versions on broker listeners:
    0  the first version (KIP-664)
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import AclOperation
from quire.node.context import Context
from quire.node.entries import entries
from quire.node.slices import Work
from quire.node.transaction_requests import check_transactional_id
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: DescribeTransactionsRequest) -> Work[DescribeTransactionsResponse]:
    states = yield from entries(
        request.transactional_ids,
        lambda transactional_id: _describe(node, context, transactional_id),
        _refused,
        lambda states: DescribeTransactionsResponse(transaction_states=states),
        context.api_version,
    )
    return DescribeTransactionsResponse(transaction_states=states)


def refuse(request: DescribeTransactionsRequest, error: ApiError) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_refused(transactional_id, error) for transactional_id in request.transactional_ids]
    )


def _describe(node: "Node", context: Context, transactional_id: str) -> TransactionState | Pending[TransactionState]:
    try:
        check_transactional_id(node, context, transactional_id, AclOperation.DESCRIBE)
        answer = node.coordinators.transactions.shard_for(transactional_id).run(
            lambda machine, _now_ms: machine.describe(transactional_id)
        )
    except ApiError as error:
        return _refused(transactional_id, error)
    return answer.then(lambda state: _refused(transactional_id, state) if isinstance(state, ApiError) else state)


def _refused(transactional_id: str, error: ApiError) -> TransactionState:
    return TransactionState(transactional_id=transactional_id, error_code=error.code)
