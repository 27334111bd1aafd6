"""FetchSnapshot: another node reads a snapshot of the metadata log, part by part.

Versions on controller listeners:
    0  the first version (KIP-630)
    1  directory id of the replica, addresses of the leader (KIP-853)
"""

from typing import TYPE_CHECKING

from quire.node.context import Context
from quire.node.quorum_requests import check_sender, leader_for
from quire.protocol.errors import ApiError
from quire.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from quire.raft.wire import fetch_snapshot

if TYPE_CHECKING:
    from quire.node.node import Node

NAMES_LEADER = 1
"""The first version of the response with the address of the leader."""


def handle(node: "Node", context: Context, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    check_sender(node, context, request.cluster_id)
    version = context.api_version  # The connection reuses its context.
    message = fetch_snapshot.read(request)
    log = node.metadata.log
    return fetch_snapshot.response(log.snapshot_part(message), message, leader_for(node, version, NAMES_LEADER))


def refuse(request: FetchSnapshotRequest, error: ApiError) -> FetchSnapshotResponse:
    return FetchSnapshotResponse(error_code=error.code)
