"""EndTxn: commit or abort; answered when that is decided for good. The markers in the partitions follow."""

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
        lambda machine, now_ms, fresh_id: machine.end_txn(request, caller, now_ms, fresh_id),
    )


def refuse(request: EndTxnRequest, error: ApiError) -> EndTxnResponse:
    return EndTxnResponse(error_code=error.code)
