"""Vote: a voter asks this one for its vote in an election of the metadata quorum, or for a pre-vote.

Versions on controller listeners:
    0  the first version (KIP-595)
    1  directory ids of both voters, addresses of the leader (KIP-853)
    2  pre-votes (KIP-996)
"""

from typing import TYPE_CHECKING

from quire.node.context import Context
from quire.node.quorum_requests import answer, check_sender, leader_for
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.messages.vote import VoteRequest, VoteResponse
from quire.raft.messages import VoteAnswer
from quire.raft.wire import vote

if TYPE_CHECKING:
    from quire.node.node import Node

NAMES_LEADER = 1
"""The first version of the response with the address of the leader."""


def handle(node: "Node", context: Context, request: VoteRequest) -> Pending[VoteResponse | ApiError]:
    check_sender(node, context, request.cluster_id)
    version = context.api_version  # The connection reuses its context.
    message = vote.read(request)
    node.refusals.candidate(message.candidate, context.client_address)

    def respond(reply: VoteAnswer) -> VoteResponse:
        return vote.response(reply, leader_for(node, version, NAMES_LEADER))

    return answer(node, message, VoteAnswer, respond)


def refuse(request: VoteRequest, error: ApiError) -> VoteResponse:
    return VoteResponse(error_code=error.code)
