"""ListTransactions: the transactional ids that this node coordinates, as far as they pass the filters."""

from typing import TYPE_CHECKING

from quire.coordinators.transaction.id_pattern import by_pattern
from quire.node.authorizer import Operation, Resource
from quire.node.context import Context
from quire.pending import Pending, gather
from quire.protocol.errors import ApiError
from quire.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(
    node: "Node", context: Context, request: ListTransactionsRequest
) -> Pending[ListTransactionsResponse | ApiError]:
    parts = [
        shard.run(lambda machine, now_ms: machine.list_transactions(request, now_ms))
        for shard in node.coordinators.transactions
    ]
    return gather(parts).then(lambda listed: _merged(node, context, request.transactional_id_pattern, listed))


def refuse(request: ListTransactionsRequest, error: ApiError) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error.code)


def _merged(
    node: "Node", context: Context, pattern: str | None, parts: list[ListTransactionsResponse | ApiError]
) -> ListTransactionsResponse | ApiError:
    """One list; an error where a part of it is missing, because nobody could tell what was left out."""
    merged = ListTransactionsResponse()
    for part in parts:
        if isinstance(part, ApiError):
            return part
        merged.unknown_state_filters = part.unknown_state_filters
        merged.transaction_states += (
            state
            for state in part.transaction_states
            if node.authorizer.allows(context, Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, state.transactional_id)
        )
    try:
        merged.transaction_states = by_pattern(merged.transaction_states, pattern)
    except ApiError as error:
        return error
    return merged
