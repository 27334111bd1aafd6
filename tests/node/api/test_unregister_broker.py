"""UnregisterBroker over both listeners."""

import pytest

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from tests.node.api.denying import deny
from tests.node.api.other_nodes import OTHER_ID, beat, controller_connection, lose_controller, register
from tests.node.conftest import SimulatedNode


def unregister(node: SimulatedNode, broker_id: int = OTHER_ID) -> UnregisterBrokerResponse:
    return node.call(UnregisterBrokerRequest(broker_id=broker_id), 0, UnregisterBrokerResponse)


@pytest.mark.parametrize("on_controller", [False, True])
def test_the_cluster_forgets_a_broker(node: SimulatedNode, on_controller: bool) -> None:
    epoch = register(node)
    beat(node, epoch)
    if on_controller:
        node.info = controller_connection()
    assert unregister(node).error_code == ErrorCode.NONE
    assert OTHER_ID not in node.node.image.brokers
    assert beat(node, epoch).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_broker_that_is_unregistered_while_it_runs_registers_again(node: SimulatedNode) -> None:
    own = node.node.node_id
    epoch = node.node.image.brokers[own].epoch
    assert unregister(node, own).error_code == ErrorCode.NONE
    node.clock.run_until(lambda: own in node.node.image.brokers and node.node.image.brokers[own].is_active)
    assert node.node.image.brokers[own].epoch > epoch


def test_an_unknown_broker_is_named(node: SimulatedNode) -> None:
    answer = unregister(node, 9)
    assert (answer.error_code, answer.error_message) == (ErrorCode.BROKER_ID_NOT_REGISTERED, "there is no broker 9")


def test_a_controller_that_is_not_active_says_so(node: SimulatedNode) -> None:
    register(node)
    lose_controller(node)
    node.info = controller_connection()
    assert unregister(node).error_code == ErrorCode.NOT_CONTROLLER


def test_unregistering_brokers_needs_alter_on_the_cluster(node: SimulatedNode) -> None:
    register(node)
    deny(node, (AclOperation.ALTER, CLUSTER_NAME))
    assert unregister(node).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert OTHER_ID in node.node.image.brokers
