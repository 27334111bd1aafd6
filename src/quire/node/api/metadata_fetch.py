"""Fetch on controller listeners: another node reads the metadata log, as a voter or as an observer.

The versions are those of Fetch (`fetch.py`), which serves clients and followers of partitions, from version 12 on.
"""

from typing import TYPE_CHECKING

from quire.node.context import Context
from quire.node.quorum_requests import answer, check_sender, leader_for
from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.protocol.messages.fetch import FetchRequest, FetchResponse
from quire.raft.messages import FetchAnswer
from quire.raft.wire import fetch

if TYPE_CHECKING:
    from quire.node.node import Node

NAMES_LEADER = 16
"""The first version of the response with the address of the leader."""


def handle(node: "Node", context: Context, request: FetchRequest) -> Pending[FetchResponse | ApiError]:
    check_sender(node, context, request.cluster_id)
    version = context.api_version  # The connection reuses its context.
    message = fetch.read(request)
    log = node.metadata.log
    if log.is_leader:
        node.refusals.follower(message.replica, context.client_address)

    def respond(reply: FetchAnswer) -> FetchResponse:
        return fetch.response(reply, log.start_offset, leader_for(node, version, NAMES_LEADER))

    return answer(node, message, FetchAnswer, respond)


def refuse(request: FetchRequest, error: ApiError) -> FetchResponse:
    return FetchResponse(error_code=error.code)
