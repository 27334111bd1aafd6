"""JoinGroup: how each version joins, and which members wait."""

import pytest

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.join_group import JoinGroupResponse
from tests.node.api.classic_member import GROUP, join, join_request, stable
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode


@pytest.mark.parametrize(
    ("version", "code"), [(3, ErrorCode.NONE), (4, ErrorCode.MEMBER_ID_REQUIRED), (9, ErrorCode.MEMBER_ID_REQUIRED)]
)
def test_a_new_member_gets_its_id_first_from_version_4_on(
    coordinator: SimulatedNode, version: int, code: ErrorCode
) -> None:
    answer = coordinator.call(join_request(), version, JoinGroupResponse)
    assert answer.error_code == code
    assert answer.member_id.startswith("test-")


def test_a_static_member_joins_at_once(coordinator: SimulatedNode) -> None:
    answer = coordinator.call(join_request(instance="one"), 9, JoinGroupResponse)
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)


def test_the_only_member_leads_the_group(coordinator: SimulatedNode) -> None:
    joined = join(coordinator)
    assert (joined.generation_id, joined.leader, joined.protocol_name) == (1, joined.member_id, "range")
    assert [member.member_id for member in joined.members] == [joined.member_id]


def test_a_second_member_waits_until_the_first_has_joined_again(coordinator: SimulatedNode) -> None:
    first = stable(coordinator)
    asked = coordinator.call(join_request(), 9, JoinGroupResponse)
    second = coordinator.send(join_request(asked.member_id), 9)
    coordinator.clock.run_for(100)
    assert not second.done
    again = coordinator.call(join_request(first.member_id), 9, JoinGroupResponse)
    assert (again.error_code, again.generation_id) == (ErrorCode.NONE, 2)
    assert second.done
    assert {member.member_id for member in again.members} == {first.member_id, asked.member_id}


def test_a_group_that_may_not_be_read_is_refused(coordinator: SimulatedNode) -> None:
    deny(coordinator, (AclOperation.READ, GROUP))
    answer = coordinator.call(join_request("somebody"), 9, JoinGroupResponse)
    assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, "somebody")
    assert (answer.generation_id, answer.protocol_name) == (-1, "")
