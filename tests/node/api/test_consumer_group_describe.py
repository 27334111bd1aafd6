"""ConsumerGroupDescribe: each group in its own entry, with an error where there is nothing to describe."""

from quire.node.authorizer import GROUP_OPERATIONS, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode

GROUP = "readers"


def joined(node: SimulatedNode) -> SimulatedNode:
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="alice",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert node.call(request, 1, ConsumerGroupHeartbeatResponse).error_code == ErrorCode.NONE
    return node


def describe(node: SimulatedNode, *groups: str, operations: bool = False, version: int = 1) -> list[DescribedGroup]:
    request = ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=operations)
    return node.call(request, version, ConsumerGroupDescribeResponse).groups


def test_a_group_is_described_with_its_members(coordinator: SimulatedNode) -> None:
    (group,) = describe(joined(coordinator), GROUP, GROUP)
    assert (group.error_code, group.group_id, group.group_epoch) == (ErrorCode.NONE, GROUP, 2)
    (member,) = group.members
    assert (member.member_id, member.client_id, member.subscribed_topic_names) == ("alice", "test", ["t"])


def test_the_protocol_of_a_member_is_described_from_version_1_on(coordinator: SimulatedNode) -> None:
    joined(coordinator)
    types = [describe(coordinator, GROUP, version=version)[0].members[0].member_type for version in (0, 1)]
    assert types == [-1, 1]


def test_a_group_without_an_id_or_without_members_is_refused_by_itself(coordinator: SimulatedNode) -> None:
    nameless, unknown, known = describe(joined(coordinator), "", "unknown", GROUP)
    assert (nameless.error_code, nameless.error_message) == (
        ErrorCode.INVALID_GROUP_ID,
        "the group id must not be empty",
    )
    assert (unknown.error_code, unknown.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "there is no consumer group unknown",
    )
    assert known.error_code == ErrorCode.NONE


def test_authorized_operations_are_described_on_request(coordinator: SimulatedNode) -> None:
    joined(coordinator)
    deny(coordinator, (AclOperation.DELETE, GROUP))
    (without,) = describe(coordinator, GROUP)
    assert without.authorized_operations == -0x80000000
    (described,) = describe(coordinator, GROUP, operations=True)
    allowed = {each for each in GROUP_OPERATIONS if described.authorized_operations & (1 << each)}
    assert allowed == set(GROUP_OPERATIONS) - {AclOperation.DELETE}


def test_a_group_that_may_not_be_described_is_refused(coordinator: SimulatedNode) -> None:
    joined(coordinator)
    deny(coordinator, (AclOperation.DESCRIBE, GROUP))
    (group,) = describe(coordinator, GROUP)
    assert (group.error_code, group.members) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, [])
    assert group.error_message == "using group readers is not allowed"
