"""ElectLeaders: gives leaderships back to first replicas, or elects a leader although records may be lost.

A broker passes the request on to the active controller.

Versions on broker and controller listeners:
    0  preferred elections only
    1  the type of the election, and an error of the whole request (KIP-460)
    2  flexible encoding
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(node: "Node", context: Context, request: ElectLeadersRequest) -> Pending[ElectLeadersResponse]:
    if not node.authorizer.allows(context, AclOperation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "electing leaders is not allowed")
    return node.to_controller.elect_leaders(request, context)
