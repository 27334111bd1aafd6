"""DescribeGroups: classic groups, and what each version returns for others."""

import pytest

from quire.node.authorizer import GROUP_OPERATIONS, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from tests.node.api.classic_member import GROUP, stable
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode


def describe(node: SimulatedNode, group: str, *, operations: bool = False, version: int = 6) -> DescribedGroup:
    request = DescribeGroupsRequest(groups=[group], include_authorized_operations=operations)
    (found,) = node.call(request, version, DescribeGroupsResponse).groups
    return found


@pytest.mark.parametrize("version", range(7))
def test_a_group_that_cannot_be_described_is_refused_in_every_version(node: SimulatedNode, version: int) -> None:
    answer = node.call(DescribeGroupsRequest(groups=["nowhere"]), version, DescribeGroupsResponse)
    assert answer.groups[0].error_code == ErrorCode.NOT_COORDINATOR
    assert (answer.groups[0].error_message is not None) == (version >= 6)


def test_a_group_is_described_with_its_members(coordinator: SimulatedNode) -> None:
    joined = stable(coordinator)
    group = describe(coordinator, GROUP)
    assert (group.error_code, group.group_state, group.protocol_data) == (ErrorCode.NONE, "Stable", "range")
    assert [(member.member_id, member.member_assignment) for member in group.members] == [
        (joined.member_id, b"everything")
    ]


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.NONE), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_an_unknown_group_is_dead_and_since_version_6_an_error(
    coordinator: SimulatedNode, version: int, code: ErrorCode
) -> None:
    group = describe(coordinator, "unknown", version=version)
    assert (group.error_code, group.group_state) == (code, "Dead")
    assert group.error_message == ("there is no classic group unknown" if version >= 6 else None)


def test_authorized_operations_are_described_on_request(coordinator: SimulatedNode) -> None:
    stable(coordinator)
    deny(coordinator, (AclOperation.DELETE, GROUP))
    assert describe(coordinator, GROUP).authorized_operations == -0x80000000
    described = describe(coordinator, GROUP, operations=True).authorized_operations
    assert {each for each in GROUP_OPERATIONS if described & (1 << each)} == set(GROUP_OPERATIONS) - {
        AclOperation.DELETE
    }


def test_a_group_that_may_not_be_described_is_refused(coordinator: SimulatedNode) -> None:
    stable(coordinator)
    deny(coordinator, (AclOperation.DESCRIBE, GROUP))
    group = describe(coordinator, GROUP)
    assert (group.error_code, group.members) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, [])
    assert group.error_message == "using group readers is not allowed"
