"""BeginQuorumEpoch: the leader of the metadata quorum announces itself to a voter that does not fetch from it.

Versions on controller listeners:
    0  the first version (KIP-595)
    1  flexible encoding; directory id of the voter, addresses of the leader (KIP-853)
"""

from typing import TYPE_CHECKING

from quire.node.context import Context
from quire.node.quorum_requests import answer, check_sender, leader_for
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from quire.raft.messages import EpochAnswer
from quire.raft.replicas import Endpoint
from quire.raft.wire import quorum_epoch

if TYPE_CHECKING:
    from quire.node.node import Node

NAMES_LEADER = 1
"""The first version of the response with the address of the leader."""


def handle(
    node: "Node", context: Context, request: BeginQuorumEpochRequest
) -> Pending[BeginQuorumEpochResponse | ApiError]:
    check_sender(node, context, request.cluster_id)
    version = context.api_version  # The connection reuses its context.
    message = quorum_epoch.read_begin(request)
    endpoints = [Endpoint(each.name, each.host, each.port) for each in request.leader_endpoints]
    node.metadata.log.leader_listens(message.leader_id, message.epoch, endpoints)

    def respond(reply: EpochAnswer) -> BeginQuorumEpochResponse:
        return quorum_epoch.begin_response(reply, leader_for(node, version, NAMES_LEADER))

    return answer(node, message, EpochAnswer, respond)


def refuse(request: BeginQuorumEpochRequest, error: ApiError) -> BeginQuorumEpochResponse:
    return BeginQuorumEpochResponse(error_code=error.code)
