"""ListPartitionReassignments: the partitions whose replicas are being changed.

The active controller answers, so a client sees what it has just asked for.

Versions on broker and controller listeners:
    0  the first version (KIP-455)
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(
    node: "Node", context: Context, request: ListPartitionReassignmentsRequest
) -> Pending[ListPartitionReassignmentsResponse]:
    if not node.authorizer.allows(context, AclOperation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "describing the cluster is not allowed")
    return node.to_controller.list_partition_reassignments(request, context)
