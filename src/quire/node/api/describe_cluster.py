"""DescribeCluster: the cluster's id, its controller, and its brokers or controllers, depending on the listener.

Versions on broker and controller listeners:
    0  the first version (KIP-700)
    1  brokers or controllers as the type of endpoint (KIP-919)
    2  fenced brokers on request (KIP-1073)
"""

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
    if on_controller and request.endpoint_type == BROKERS:
        return _refuse_client(node)
    if request.endpoint_type == CONTROLLERS and not on_controller:
        raise ApiError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this listener does not describe that kind of endpoint")
    response = DescribeClusterResponse(
        endpoint_type=request.endpoint_type,
        cluster_id=node.cluster_id,
        controller_id=_leader_id(node) if on_controller else node.a_live_broker_id(),
        brokers=_controllers(node, context) if on_controller else _brokers(node, context, request),
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = node.authorizer.operations(context, Resource.CLUSTER, CLUSTER_NAME)
    return response


def _refuse_client(node: "Node") -> DescribeClusterResponse:
    """The error that Kafka gives here, and also the brokers: a client can then tell its user the right address."""
    brokers = node.image.brokers_sorted()
    # A node that is only a controller knows the names of the listeners for clients from the brokers.
    clients_use = next((broker.endpoints[0].name for broker in brokers if broker.endpoints), "")
    return DescribeClusterResponse(
        error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
        error_message="this is the controller's listener; clients use those of the brokers",
        brokers=[
            DescribeClusterBroker(broker_id=broker.broker_id, host=host, port=port, rack=broker.rack)
            for broker, host, port in node.live_brokers(clients_use)
        ],
    )


def refuse(request: DescribeClusterRequest, error: ApiError) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error.code, error_message=error.message)


def _leader_id(node: "Node") -> int:
    leader_id = node.metadata.log.leader_id
    return -1 if leader_id is None else leader_id


def _controllers(node: "Node", context: Context) -> list[DescribeClusterBroker]:
    return [
        DescribeClusterBroker(broker_id=controller_id, host=host, port=port)
        for controller_id, (host, port) in node.controllers(context.listener).items()
    ]


def _brokers(node: "Node", context: Context, request: DescribeClusterRequest) -> list[DescribeClusterBroker]:
    found = node.brokers if request.include_fenced_brokers else node.live_brokers
    return [
        DescribeClusterBroker(
            broker_id=broker.broker_id, host=host, port=port, rack=broker.rack, is_fenced=broker.fenced
        )
        for broker, host, port in found(context.listener)
    ]
