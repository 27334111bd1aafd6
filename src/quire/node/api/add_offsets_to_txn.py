"""AddOffsetsToTxn: adds a group's partition of `__consumer_offsets` to a transaction.

A producer sends this before TxnOffsetCommit, so that the transaction also ends in that partition. With transaction
protocol 2, TxnOffsetCommit adds the partition by itself.

Versions on broker listeners:
    0  the first version
    1  a throttled client gets its response at once and waits by itself (KIP-219)
    2  a producer with an old epoch gets PRODUCER_FENCED (KIP-588)
    3  flexible encoding
    4  the client knows TRANSACTION_ABORTABLE (KIP-890)
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import AclOperation
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
    check_group(node, context, request.group_id, AclOperation.READ)
    groups = node.coordinators.groups
    if not groups.partition_count:
        # A client looks up the group's coordinator only after this request, so nothing else would create the topic.
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
