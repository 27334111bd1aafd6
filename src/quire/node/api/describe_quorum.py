"""DescribeQuorum: the leader and the high watermark of the metadata log, and the position of each replica.

Versions on broker and controller listeners:
    0  the first version (KIP-595)
    1  when a replica last fetched and was last caught up (KIP-836)
    2  error messages, directory ids of replicas, addresses of voters (KIP-853)
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol import uuids
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]

NAMES_DIRECTORIES = 2
"""The first version that identifies replicas by node id and directory id (KIP-853)."""


def handle(node: "Node", context: Context, request: DescribeQuorumRequest) -> Pending[DescribeQuorumResponse]:
    if not node.authorizer.allows(context, AclOperation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "describing the quorum is not allowed")
    described = node.to_controller.describe_quorum(request, context)
    return described.then(_without_directories) if context.api_version < NAMES_DIRECTORIES else described


def _without_directories(response: DescribeQuorumResponse) -> DescribeQuorumResponse:
    """Leaves out directory ids and the endpoints of voters, for which earlier versions have no fields."""
    response.nodes = []
    for topic in response.topics:
        for partition in topic.partitions:
            for replica in (*partition.current_voters, *partition.observers):
                replica.replica_directory_id = uuids.ZERO
    return response
