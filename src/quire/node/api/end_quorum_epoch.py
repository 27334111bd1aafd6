"""EndQuorumEpoch: the leader of the metadata quorum resigns, and names the voters that should start an election first.

Versions on controller listeners:
    0  the first version (KIP-595)
    1  flexible encoding; successors by node id and directory id, addresses of the leader (KIP-853)
"""

from typing import TYPE_CHECKING

from quire.node.context import Context
from quire.node.quorum_requests import answer, check_sender, leader_for
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from quire.raft.messages import EpochAnswer
from quire.raft.wire import quorum_epoch

if TYPE_CHECKING:
    from quire.node.node import Node

NAMES_LEADER = 1
"""The first version of the response with the address of the leader."""


def handle(
    node: "Node", context: Context, request: EndQuorumEpochRequest
) -> Pending[EndQuorumEpochResponse | ApiError]:
    check_sender(node, context, request.cluster_id)
    version = context.api_version  # The connection reuses its context.
    message = quorum_epoch.read_end(request)

    def respond(reply: EpochAnswer) -> EndQuorumEpochResponse:
        return quorum_epoch.end_response(reply, leader_for(node, version, NAMES_LEADER))

    return answer(node, message, EpochAnswer, respond)


def refuse(request: EndQuorumEpochRequest, error: ApiError) -> EndQuorumEpochResponse:
    return EndQuorumEpochResponse(error_code=error.code)
