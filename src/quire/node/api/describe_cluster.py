"""DescribeCluster: the cluster's id, its brokers and its controller."""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, Resource
from quire.node.context import Context
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from quire.node.node import Node

BROKERS = 1
CONTROLLERS = 2


def handle(node: "Node", context: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
    on_controller = node.is_controller_listener(context.listener)
    if request.endpoint_type not in (BROKERS, CONTROLLERS):
        raise ApiError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"endpoint type {request.endpoint_type} is neither 1 nor 2")
    if (request.endpoint_type == CONTROLLERS) != on_controller:
        raise ApiError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this listener does not describe that kind of endpoint")
    response = DescribeClusterResponse(
        endpoint_type=request.endpoint_type,
        cluster_id=node.cluster_id,
        controller_id=node.node_id if on_controller else node.a_live_broker_id(),
        brokers=[
            DescribeClusterBroker(broker_id=broker_id, host=host, port=port, rack=rack)
            for broker_id, host, port, rack in _endpoints(node, context, on_controller)
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = node.authorizer.operations(context, Resource.CLUSTER, CLUSTER_NAME)
    return response


def refuse(request: DescribeClusterRequest, error: ApiError) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error.code, error_message=error.message)


def _endpoints(node: "Node", context: Context, on_controller: bool) -> list[tuple[int, str, int, str | None]]:
    if on_controller:
        host, port = node.controller_endpoint()
        return [(node.node_id, host, port, None)]
    return [(broker.broker_id, host, port, broker.rack) for broker, host, port in node.live_brokers(context.listener)]
