"""UpdateRaftVoter: a voter reports its addresses and its versions of KRaft to the leader.

Versions on controller listeners:
    0  the first version (KIP-853)
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.context import Context
from quire.node.quorum_requests import check_sender
from quire.pending import Pending
from quire.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(node: "Node", context: Context, request: UpdateRaftVoterRequest) -> Pending[UpdateRaftVoterResponse]:
    check_sender(node, context, request.cluster_id)
    return node.to_controller.update_raft_voter(request, context)
