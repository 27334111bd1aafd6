"""ListTransactions: the transactional ids that this node coordinates and that pass the filters.

Versions on broker listeners:
    0  the first version (KIP-664)
    1  filter by duration (KIP-994)
    2  filter by a pattern of transactional ids (KIP-1152)
"""

from typing import TYPE_CHECKING

from quire.coordinators.transaction.id_pattern import by_pattern
from quire.node.authorizer import AclOperation, Resource
from quire.node.context import Context
from quire.node.slices import Work, outcome
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: ListTransactionsRequest) -> Work[ListTransactionsResponse]:
    """Fails as a whole if one shard cannot answer: the client could not tell that the list is incomplete."""
    response = ListTransactionsResponse()
    for shard in list(node.coordinators.transactions):
        listed: Pending[ListTransactionsResponse | ApiError] = shard.run(
            lambda machine, now_ms: machine.list_transactions(request, now_ms)
        )
        part = yield from outcome(listed)
        response.unknown_state_filters = part.unknown_state_filters
        response.transaction_states += (
            state
            for state in part.transaction_states
            if node.authorizer.allows(context, AclOperation.DESCRIBE, Resource.TRANSACTIONAL_ID, state.transactional_id)
        )
    matching = yield from by_pattern(response.transaction_states, request.transactional_id_pattern)
    response.transaction_states = matching
    return response


def refuse(request: ListTransactionsRequest, error: ApiError) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error.code)
