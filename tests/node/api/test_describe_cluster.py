"""DescribeCluster: brokers on a broker listener, controllers on a controller listener."""

import pytest

from quire.node.authorizer import CLUSTER_NAME, CLUSTER_OPERATIONS, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode

BROKERS, CONTROLLERS = 1, 2


def describe(node: SimulatedNode, listener: str, endpoint_type: int) -> DescribeClusterResponse:
    node.info.listener = listener
    node.info.state = None
    return node.call(DescribeClusterRequest(endpoint_type=endpoint_type), 2, DescribeClusterResponse)


@pytest.mark.parametrize(("listener", "endpoint_type"), [("PLAINTEXT", BROKERS), ("CONTROLLER", CONTROLLERS)])
def test_a_listener_describes_its_own_kind_of_endpoint(node: SimulatedNode, listener: str, endpoint_type: int) -> None:
    answer = describe(node, listener, endpoint_type)
    assert (answer.error_code, answer.endpoint_type) == (ErrorCode.NONE, endpoint_type)
    assert (answer.cluster_id, answer.controller_id) == (node.node.cluster_id, 1)
    assert [(broker.broker_id, broker.port) for broker in answer.brokers] == [(1, node.node.ports[listener])]


@pytest.mark.parametrize(
    ("listener", "endpoint_type", "code", "message"),
    [
        (
            "PLAINTEXT",
            CONTROLLERS,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "this listener does not describe that kind of endpoint",
        ),
        ("PLAINTEXT", 3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "endpoint type 3 is neither 1 nor 2"),
    ],
)
def test_any_other_kind_of_endpoint_is_refused(
    node: SimulatedNode, listener: str, endpoint_type: int, code: ErrorCode, message: str
) -> None:
    answer = describe(node, listener, endpoint_type)
    assert (answer.error_code, answer.error_message, answer.brokers) == (code, message, [])


def test_a_client_at_the_controllers_listener_is_refused_with_the_address_of_the_brokers(node: SimulatedNode) -> None:
    answer = describe(node, "CONTROLLER", BROKERS)
    assert answer.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert answer.error_message == "this is the controller's listener; clients use those of the brokers"
    assert [(broker.broker_id, broker.port) for broker in answer.brokers] == [(1, node.node.ports["PLAINTEXT"])]


def test_authorized_operations_are_described_on_request(node: SimulatedNode) -> None:
    deny(node, (AclOperation.ALTER, CLUSTER_NAME))
    request = DescribeClusterRequest(include_cluster_authorized_operations=True, endpoint_type=BROKERS)
    described = node.call(request, 2, DescribeClusterResponse).cluster_authorized_operations
    allowed = {each for each in CLUSTER_OPERATIONS if described & (1 << each)}
    assert allowed == set(CLUSTER_OPERATIONS) - {AclOperation.ALTER}
