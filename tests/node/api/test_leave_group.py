"""LeaveGroup: one member, or several at once."""

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from tests.node.api.classic_member import GROUP, stable
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode


def leave(node: SimulatedNode, *member_ids: str) -> LeaveGroupResponse:
    members = [MemberIdentity(member_id=member_id) for member_id in member_ids]
    return node.call(LeaveGroupRequest(group_id=GROUP, members=members), 5, LeaveGroupResponse)


def test_several_members_leave_or_are_refused_one_by_one(coordinator: SimulatedNode) -> None:
    joined = stable(coordinator)
    answer = leave(coordinator, "somebody", joined.member_id)
    assert answer.error_code == ErrorCode.NONE
    assert [(member.member_id, member.error_code) for member in answer.members] == [
        ("somebody", ErrorCode.UNKNOWN_MEMBER_ID),
        (joined.member_id, ErrorCode.NONE),
    ]


def test_one_member_leaves_in_the_first_versions(coordinator: SimulatedNode) -> None:
    joined = stable(coordinator)
    request = LeaveGroupRequest(group_id=GROUP, member_id=joined.member_id)
    assert coordinator.call(request, 2, LeaveGroupResponse).error_code == ErrorCode.NONE
    assert coordinator.call(request, 2, LeaveGroupResponse).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_that_may_not_be_read_is_refused(coordinator: SimulatedNode) -> None:
    joined = stable(coordinator)
    deny(coordinator, (AclOperation.READ, GROUP))
    answer = leave(coordinator, joined.member_id)
    assert (answer.error_code, answer.members) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, [])
