"""Requests of other nodes to the controller listener of a simulated node."""

from typing import TypeVar

from quire.metadata.features import SUPPORTED
from quire.network.handler import ConnectionInfo
from quire.protocol.errors import ErrorCode
from quire.protocol.messages import broker_registration as broker
from quire.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quire.protocol.schema import Message
from tests.node.conftest import SimulatedNode

M = TypeVar("M", bound=Message)

OTHER_ID = 2
OTHER_ADDRESS = "10.0.0.2:7"


def controller_connection() -> ConnectionInfo:
    """The connection of broker 2. Each node needs its own, because the server keeps state per connection."""
    return ConnectionInfo(7, "CONTROLLER", OTHER_ADDRESS)


def ask_controller(node: SimulatedNode, request: Message, version: int, expected: type[M]) -> M:
    """Calls the controller listener."""
    before, node.info = node.info, controller_connection()
    try:
        return node.call(request, version, expected)
    finally:
        node.info = before


def lose_controller(node: SimulatedNode) -> None:
    """The node no longer leads the metadata quorum, and no other node does."""
    node.node.metadata.leader_changed(None, 99)


def registration(node: SimulatedNode, **fields: object) -> broker.BrokerRegistrationRequest:
    request = broker.BrokerRegistrationRequest(
        broker_id=OTHER_ID,
        cluster_id=node.node.cluster_id,
        incarnation_id=b"i" * 16,
        listeners=[broker.Listener(name="PLAINTEXT", host="other", port=9092)],
        features=[
            broker.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in sorted(SUPPORTED.items())
        ],
        log_dirs=[b"d" * 16],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def register(node: SimulatedNode, **fields: object) -> int:
    """The broker epoch of broker 2."""
    response = ask_controller(node, registration(node, **fields), 4, broker.BrokerRegistrationResponse)
    assert response.error_code == ErrorCode.NONE, ErrorCode(response.error_code)
    return response.broker_epoch


def beat(node: SimulatedNode, epoch: int, **fields: object) -> BrokerHeartbeatResponse:
    request = BrokerHeartbeatRequest(
        broker_id=OTHER_ID, broker_epoch=epoch, current_metadata_offset=node.node.image.offset
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return ask_controller(node, request, 2, BrokerHeartbeatResponse)
