"""AddOffsetsToTxn: a transaction is about to commit a group's offsets, and has to end in their partition too."""

from typing import TYPE_CHECKING

from quire.node.authorizer import Operation
from quire.node.context import Context
from quire.node.group_requests import caller_of, check_group
from quire.node.transaction_requests import run_in_transaction
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(
    node: "Node", context: Context, request: AddOffsetsToTxnRequest
) -> Pending[AddOffsetsToTxnResponse | ApiError]:
    check_group(node, context, request.group_id, Operation.READ)
    groups = node.coordinators.groups
    if not groups.partition_count:
        # A client asks for the group's coordinator only after this, so nobody else would have the topic created.
        return node.coordinators.create_topic(groups.topic).then(
            lambda error: ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{groups.topic} is being created: try again")
        )
    partition = groups.partition_for(request.group_id)
    caller = caller_of(context)
    return run_in_transaction(
        node,
        context,
        request.transactional_id,
        lambda machine, now_ms: machine.add_offsets(request, caller, now_ms, partition),
    )


def refuse(request: AddOffsetsToTxnRequest, error: ApiError) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=error.code)
