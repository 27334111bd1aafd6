"""DeleteGroups: each group is deleted or refused by itself."""

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from quire.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from tests.node.api.classic_member import GROUP, stable
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode


def delete(node: SimulatedNode, *groups: str) -> list[tuple[str, int]]:
    answer = node.call(DeleteGroupsRequest(groups_names=list(groups)), 2, DeleteGroupsResponse)
    return [(result.group_id, result.error_code) for result in answer.results]


def empty_group(node: SimulatedNode) -> None:
    member = MemberIdentity(member_id=stable(node).member_id)
    answer = node.call(LeaveGroupRequest(group_id=GROUP, members=[member]), 5, LeaveGroupResponse)
    assert answer.error_code == ErrorCode.NONE


def test_only_groups_without_members_are_deleted(coordinator: SimulatedNode) -> None:
    empty_group(coordinator)
    stable(coordinator, group="busy")
    assert delete(coordinator, GROUP, "busy", "unknown") == [
        (GROUP, ErrorCode.NONE),
        ("busy", ErrorCode.NON_EMPTY_GROUP),
        ("unknown", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


def test_a_group_named_twice_has_one_result(coordinator: SimulatedNode) -> None:
    empty_group(coordinator)
    assert delete(coordinator, GROUP, GROUP) == [(GROUP, ErrorCode.NONE)]


def test_a_group_that_may_not_be_deleted_is_refused_by_itself(coordinator: SimulatedNode) -> None:
    empty_group(coordinator)
    deny(coordinator, (AclOperation.DELETE, "other"))
    assert delete(coordinator, "other", GROUP) == [
        ("other", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (GROUP, ErrorCode.NONE),
    ]
