"""RemoveRaftVoter: removes a controller from the voters of the metadata quorum, also one that is lost.

Versions on broker and controller listeners:
    0  the first version (KIP-853)
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(node: "Node", context: Context, request: RemoveRaftVoterRequest) -> Pending[RemoveRaftVoterResponse]:
    if not node.authorizer.allows(context, AclOperation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "changing the voters is not allowed")
    return node.to_controller.remove_raft_voter(request, context)
