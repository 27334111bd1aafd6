"""BrokerRegistration over the controller listener."""

import pytest

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.broker_registration import BrokerRegistrationResponse
from tests.node.api.denying import deny
from tests.node.api.other_nodes import OTHER_ID, ask_controller, beat, lose_controller, register, registration
from tests.node.conftest import SimulatedNode


def refusal(node: SimulatedNode, **fields: object) -> int:
    return ask_controller(node, registration(node, **fields), 4, BrokerRegistrationResponse).error_code


def test_another_broker_registers_in_the_epoch_of_its_offset(node: SimulatedNode) -> None:
    epoch = register(node)
    broker = node.node.image.brokers[OTHER_ID]
    assert (broker.epoch, broker.fenced, broker.incarnation_id) == (epoch, True, b"i" * 16)


def test_a_registration_that_is_sent_twice_is_one_registration(node: SimulatedNode) -> None:
    assert register(node) == register(node)


def test_a_broker_of_another_cluster_is_refused(node: SimulatedNode) -> None:
    assert refusal(node, cluster_id="another") == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_broker_without_the_clusters_features_is_refused(node: SimulatedNode) -> None:
    assert refusal(node, features=[]) == ErrorCode.UNSUPPORTED_VERSION


def test_a_second_process_with_the_id_of_a_live_broker_is_refused(node: SimulatedNode) -> None:
    beat(node, register(node))
    assert refusal(node, incarnation_id=b"j" * 16) == ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_a_process_elsewhere_with_the_id_of_the_controllers_own_broker_is_refused(node: SimulatedNode) -> None:
    own = node.node.image.brokers[node.node.node_id]
    assert refusal(node, broker_id=own.broker_id) == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert node.node.image.brokers[own.broker_id] == own


def test_an_inactive_controller_registers_no_broker(node: SimulatedNode) -> None:
    lose_controller(node)
    assert refusal(node) == ErrorCode.NOT_CONTROLLER


def test_only_nodes_register(node: SimulatedNode) -> None:
    deny(node, (AclOperation.CLUSTER_ACTION, CLUSTER_NAME))
    assert refusal(node) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_clients_of_a_broker_listener_cannot_register(node: SimulatedNode) -> None:
    with pytest.raises(Exception, match="BrokerRegistration is a request between nodes"):
        node.send(registration(node), 4)
