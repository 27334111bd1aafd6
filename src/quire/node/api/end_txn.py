"""EndTxn: commits or aborts a transaction.

The response is sent when the decision is committed in `__transaction_state`. The coordinator then writes the markers to
the transaction's partitions.

Versions on broker listeners:
    0  the first version
    1  a throttled client gets its response at once and waits by itself (KIP-219)
    2  a producer with an old epoch gets PRODUCER_FENCED (KIP-588)
    3  flexible encoding
    4  the client knows TRANSACTION_ABORTABLE (KIP-890)
    5  transaction protocol 2: the epoch of the next transaction in the response (KIP-890)
"""

from typing import TYPE_CHECKING

from quire.node.context import Context
from quire.node.group_requests import caller_of
from quire.node.transaction_requests import run_with_producer_id
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: EndTxnRequest) -> Pending[EndTxnResponse | ApiError]:
    caller = caller_of(context)
    return run_with_producer_id(
        node,
        context,
        request.transactional_id,
        lambda machine, now_ms, new_producer_id: machine.end_txn(request, caller, now_ms, new_producer_id),
    )


def refuse(request: EndTxnRequest, error: ApiError) -> EndTxnResponse:
    return EndTxnResponse(error_code=error.code)
