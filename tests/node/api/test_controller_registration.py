"""ControllerRegistration over the controller listener."""

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    Listener,
)
from tests.node.api.denying import deny
from tests.node.api.other_nodes import ask_controller, lose_controller
from tests.node.conftest import SimulatedNode

REQUEST = ControllerRegistrationRequest(
    controller_id=3, incarnation_id=b"i" * 16, listeners=[Listener(name="CONTROLLER", host="third", port=9093)]
)


def register(node: SimulatedNode) -> ControllerRegistrationResponse:
    return ask_controller(node, REQUEST, 0, ControllerRegistrationResponse)


def test_another_controller_is_in_the_image_with_its_address(node: SimulatedNode) -> None:
    assert register(node).error_code == ErrorCode.NONE
    registered = node.node.image.controllers[3]
    assert [(each.host, each.port) for each in registered.endpoints] == [("third", 9093)]


def test_an_inactive_controller_registers_no_controller(node: SimulatedNode) -> None:
    lose_controller(node)
    answer = register(node)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    assert answer.error_message == "this node is not the active controller"


def test_only_nodes_register(node: SimulatedNode) -> None:
    deny(node, (AclOperation.CLUSTER_ACTION, CLUSTER_NAME))
    assert register(node).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
