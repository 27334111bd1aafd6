"""DescribeQuorum: who leads the metadata log, how far it is committed, and how far each voter has come."""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, Operation, Resource
from quire.node.context import Context
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    if not node.authorizer.allows(context, Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "describing the quorum is not allowed")
    return node.controller.describe_quorum(request)


def refuse(request: DescribeQuorumRequest, error: ApiError) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=error.code, error_message=error.message)
