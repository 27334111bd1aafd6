"""Envelope over the controller listener: a client's request that a broker forwards."""

import pytest

from quire.network.handler import ConnectionInfo
from quire.node.api import SERVED
from quire.node.authorizer import CLUSTER_NAME, AclOperation, Authorizer, Resource
from quire.node.context import Context, Principal
from quire.node.envelope import FORWARDABLE, unwrap_response, wrap
from quire.protocol import codec
from quire.protocol.apis import API_NAMES
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.describe_cluster import DescribeClusterRequest
from quire.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from quire.protocol.messages.headers import RequestHeader
from quire.protocol.schema import Message
from tests.node.api.denying import deny
from tests.node.api.other_nodes import ask_controller, lose_controller
from tests.node.conftest import SimulatedNode

CLIENT = Context("PLAINTEXT", Principal("User", "alice"), "app", "10.1.2.3:4000", api_version=6)
REQUEST = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=3, replication_factor=1)])


def ask(node: SimulatedNode, envelope: EnvelopeRequest) -> EnvelopeResponse:
    return ask_controller(node, envelope, 0, EnvelopeResponse)


def test_the_request_in_it_is_answered_in_the_clients_version(node: SimulatedNode) -> None:
    answer = unwrap_response(CLIENT, REQUEST, ask(node, wrap(CLIENT, REQUEST)))
    assert isinstance(answer, CreateTopicsResponse)
    assert (answer.topics[0].error_code, answer.topics[0].topic_id) == (ErrorCode.NONE, bytes(16)), "ids came later"
    assert len(node.node.image.topics_by_name["t"].partitions) == 3


def test_the_client_is_authorized_and_not_the_broker(node: SimulatedNode) -> None:
    seen: list[Context] = []

    class Recording(Authorizer):
        def allows(self, context: Context, operation: AclOperation, resource: Resource, name: str) -> bool:
            seen.append(context)
            return str(context.principal) != "User:alice"

    node.node.authorizer = Recording()
    answer = unwrap_response(CLIENT, REQUEST, ask(node, wrap(CLIENT, REQUEST)))
    assert answer.topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (str(seen[0].principal), seen[0].client_id) == ("User:ANONYMOUS", "test"), "the broker"
    assert (seen[1].client_id, seen[1].client_address, seen[1].api_version) == ("app", "10.1.2.3", 6)


@pytest.mark.parametrize("peer", ["[2001:db8::1]:80", "192.0.2.1:80"])
def test_addresses_of_both_kinds_are_passed_on(peer: str) -> None:
    envelope = wrap(Context("PLAINTEXT", CLIENT.principal, "app", peer, 6), REQUEST)
    assert len(envelope.client_host_address) == (16 if "[" in peer else 4)


def header_only(request: Message, version: int) -> bytes:
    header = RequestHeader(request_api_key=request.API_KEY, request_api_version=version, client_id="app")
    return codec.encode(header, 2)


GOOD = wrap(CLIENT, REQUEST)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"request_data": b""}, ErrorCode.INVALID_REQUEST),
        ({"request_data": header_only(GOOD, 0) + codec.encode(GOOD, 0)}, ErrorCode.INVALID_REQUEST),
        ({"request_data": header_only(DescribeClusterRequest(), 1)}, ErrorCode.INVALID_REQUEST),
        ({"request_data": bytes(GOOD.request_data)[:9]}, ErrorCode.INVALID_REQUEST),
        ({"request_data": bytes(GOOD.request_data)[:-3]}, ErrorCode.INVALID_REQUEST),
        ({"request_data": header_only(REQUEST, 99)}, ErrorCode.UNSUPPORTED_VERSION),
        ({"request_principal": None}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": b"\0\x09alice"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": b"\0\0\x7f"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"client_host_address": b"123"}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_malformed_envelopes_are_refused(
    node: SimulatedNode, changed: dict[str, bytes | None], error: ErrorCode
) -> None:
    envelope = wrap(CLIENT, REQUEST)
    for name, value in changed.items():
        setattr(envelope, name, value)
    assert ask(node, envelope).error_code == error
    assert node.node.image.topic("t") is None


def test_a_controller_that_is_not_active_refuses_the_envelope(node: SimulatedNode) -> None:
    lose_controller(node)
    assert ask(node, wrap(CLIENT, REQUEST)).error_code == ErrorCode.NOT_CONTROLLER


def test_only_nodes_pass_requests_on(node: SimulatedNode) -> None:
    deny(node, (AclOperation.CLUSTER_ACTION, CLUSTER_NAME))
    assert ask(node, wrap(CLIENT, REQUEST)).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_broker_listener_has_no_envelopes(node: SimulatedNode) -> None:
    node.info = ConnectionInfo(1, "PLAINTEXT", "client:1")
    with pytest.raises(Exception, match="Envelope is a request between nodes"):
        node.send(wrap(CLIENT, REQUEST), 0)


def test_brokers_pass_on_every_change_that_controllers_answer_too() -> None:
    changes = {name for name, served in SERVED.items() if served.on_broker and served.on_controller and served.changes}
    look_ups = {"DescribeQuorum", "ListPartitionReassignments"}  # only the active controller can answer these
    assert {API_NAMES[key] for key in FORWARDABLE} == changes | look_ups
