"""AlterPartitionReassignments: moves replicas to other brokers, adds or removes some, or cancels that.

The response says only that it has begun. ListPartitionReassignments shows what is still in progress.

Versions on broker and controller listeners:
    0  the first version (KIP-455)
    1  the client may forbid that the replication factor changes (KIP-860)
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(
    node: "Node", context: Context, request: AlterPartitionReassignmentsRequest
) -> Pending[AlterPartitionReassignmentsResponse]:
    if not node.authorizer.allows(context, AclOperation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "reassigning partitions is not allowed")
    return node.to_controller.alter_partition_reassignments(request, context)
