"""AddRaftVoter: adds a controller to the voters of the metadata quorum, once it has caught up with the log.

Versions on broker and controller listeners:
    0  the first version (KIP-853)
    1  the answer may come before the change is committed
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(node: "Node", context: Context, request: AddRaftVoterRequest) -> Pending[AddRaftVoterResponse]:
    if not node.authorizer.allows(context, AclOperation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "changing the voters is not allowed")
    return node.to_controller.add_raft_voter(request, context)
