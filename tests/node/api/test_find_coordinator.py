"""FindCoordinator: creates the internal topic on the first request, and answers key by key since version 4."""

import pytest

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode

GROUP, TRANSACTION, SHARE = 0, 1, 2


def find(node: SimulatedNode, key_type: int, *keys: str) -> list[tuple[str, int, int]]:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
    answer = node.call(request, 6, FindCoordinatorResponse)
    return [(each.key, each.error_code, each.node_id) for each in answer.coordinators]


@pytest.mark.parametrize(("key_type", "topic"), [(GROUP, "__consumer_offsets"), (TRANSACTION, "__transaction_state")])
def test_the_first_request_creates_the_internal_topic(node: SimulatedNode, key_type: int, topic: str) -> None:
    assert node.node.image.topic(topic) is None
    assert find(node, key_type, "a", "b", "a") == [("a", ErrorCode.NONE, 1), ("b", ErrorCode.NONE, 1)]
    assert node.node.image.topic(topic) is not None


def test_one_key_is_answered_in_the_fields_of_the_first_versions(coordinator: SimulatedNode) -> None:
    answer = coordinator.call(FindCoordinatorRequest(key="a"), 3, FindCoordinatorResponse)
    assert (answer.error_code, answer.node_id, answer.coordinators) == (ErrorCode.NONE, 1, [])
    assert answer.port == coordinator.node.ports["PLAINTEXT"]


def test_coordinators_of_share_groups_are_refused_with_a_message(coordinator: SimulatedNode) -> None:
    request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=["a"])
    (found,) = coordinator.call(request, 6, FindCoordinatorResponse).coordinators
    assert (found.error_code, found.node_id) == (ErrorCode.INVALID_REQUEST, -1)
    assert found.error_message == "there are no coordinators of type 2"


@pytest.mark.parametrize(
    ("key_type", "code"),
    [
        (GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (TRANSACTION, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_a_key_that_may_not_be_described_is_refused_by_itself(
    coordinator: SimulatedNode, key_type: int, code: ErrorCode
) -> None:
    deny(coordinator, (AclOperation.DESCRIBE, "secret"))
    assert find(coordinator, key_type, "secret", "a") == [("secret", code, -1), ("a", ErrorCode.NONE, 1)]
