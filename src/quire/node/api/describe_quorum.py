"""DescribeQuorum: who leads the metadata log, how far it is committed, and how far each voter has come."""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, Operation, Resource
from quire.node.context import Context
from quire.protocol import uuids
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse

if TYPE_CHECKING:
    from quire.node.node import Node

NAMES_DIRECTORIES = 2
"""The first version that tells replicas of one node apart by the ids of their directories (KIP-853)."""


def handle(node: "Node", context: Context, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    if not node.authorizer.allows(context, Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "describing the quorum is not allowed")
    response = node.controller.describe_quorum(request)
    if context.api_version < NAMES_DIRECTORIES:
        _leave_out_directories(response)
    return response


def _leave_out_directories(response: DescribeQuorumResponse) -> None:
    """And how to reach the voters: what earlier versions have no place for."""
    response.nodes = []
    for topic in response.topics:
        for partition in topic.partitions:
            for replica in (*partition.current_voters, *partition.observers):
                replica.replica_directory_id = uuids.ZERO


def refuse(request: DescribeQuorumRequest, error: ApiError) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=error.code, error_message=error.message)
