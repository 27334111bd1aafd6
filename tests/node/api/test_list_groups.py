"""ListGroups: the groups that pass the filters and that the client may see."""

import pytest

from quire.coordinators.runtime.shard import Shard
from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.node.api.classic_member import join, stable
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode


def listed(node: SimulatedNode, **filters: list[str]) -> set[str]:
    answer = node.call(ListGroupsRequest(**filters), 5, ListGroupsResponse)
    assert answer.error_code == ErrorCode.NONE
    return {group.group_id for group in answer.groups}


@pytest.fixture
def node(coordinator: SimulatedNode) -> SimulatedNode:
    stable(coordinator, group="stable")
    join(coordinator, group="rebalancing")
    return coordinator


def test_groups_are_listed_by_state_and_type(node: SimulatedNode) -> None:
    assert listed(node) == {"stable", "rebalancing"}
    assert listed(node, states_filter=["Stable"]) == {"stable"}
    assert listed(node, types_filter=["consumer"]) == set()


def test_a_client_that_may_not_describe_the_cluster_sees_the_groups_it_may_describe(node: SimulatedNode) -> None:
    deny(node, (AclOperation.DESCRIBE, "stable"))
    assert listed(node) == {"stable", "rebalancing"}
    deny(node, (AclOperation.DESCRIBE, "stable"), (AclOperation.DESCRIBE, CLUSTER_NAME))
    assert listed(node) == {"rebalancing"}


def test_a_list_that_would_not_be_complete_is_an_error(node: SimulatedNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "not now")

    monkeypatch.setattr(Shard, "run", refuse)
    answer = node.call(ListGroupsRequest(), 5, ListGroupsResponse)
    assert (answer.error_code, answer.groups) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])
