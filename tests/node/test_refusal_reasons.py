"""A reason is found for any request, complete or not: a log line must not break the response."""

import pytest

from quire.node.api import SERVED
from quire.node.refusal_reasons import is_routine, reason_for, sender_id
from quire.protocol import apis
from quire.protocol.errors import ErrorCode
from tests.node.conftest import SimulatedNode
from tests.protocol.every_message import full_message

BETWEEN_NODES = [name for name, served in SERVED.items() if served.only_nodes_send_it_to_controllers]


def test_all_requests_that_only_nodes_send_are_watched() -> None:
    assert {"Vote", "Fetch", "FetchSnapshot", "Envelope", "BrokerHeartbeat"} < set(BETWEEN_NODES)
    assert not {"CreateTopics", "DescribeQuorum", "ApiVersions"} & set(BETWEEN_NODES)


def test_an_empty_request_breaks_nothing(node: SimulatedNode) -> None:
    for api in BETWEEN_NODES:
        request = apis.request_class(apis.api_key(api))()
        for code in ErrorCode:
            assert isinstance(reason_for(node.node, api, request, code), str)
            is_routine(api, request, code)
        sender = sender_id(api, request)
        assert sender is None or isinstance(sender, int)


@pytest.mark.parametrize("api", [name for name in BETWEEN_NODES if name != "Envelope"])
def test_every_request_with_a_sender_names_it(api: str) -> None:
    request = full_message(apis.request_class(apis.api_key(api)), SERVED[api].newest)
    assert sender_id(api, request) is not None


def test_finding_the_leader_is_routine() -> None:
    request = apis.request_class(apis.api_key("BrokerHeartbeat"))()
    assert is_routine("BrokerHeartbeat", request, ErrorCode.NOT_CONTROLLER)
    assert not is_routine("BrokerHeartbeat", request, ErrorCode.STALE_BROKER_EPOCH)
