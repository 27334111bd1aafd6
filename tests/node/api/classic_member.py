"""A member of a classic group that a test controls, request by request, against a simulated node."""

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.node.conftest import SimulatedNode

GROUP = "readers"


def join_request(member_id: str = "", *, group: str = GROUP, instance: str | None = None) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def join(node: SimulatedNode, *, group: str = GROUP) -> JoinGroupResponse:
    """Joins as the only member: first to get a member id, then with it."""
    first = node.call(join_request(group=group), 9, JoinGroupResponse)
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    joined = node.call(join_request(first.member_id, group=group), 9, JoinGroupResponse)
    assert joined.error_code == ErrorCode.NONE
    return joined


def sync_request(joined: JoinGroupResponse, *, group: str = GROUP) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"everything")],
    )


def stable(node: SimulatedNode, *, group: str = GROUP) -> JoinGroupResponse:
    """A stable group with one member."""
    joined = join(node, group=group)
    assert node.call(sync_request(joined, group=group), 5, SyncGroupResponse).error_code == ErrorCode.NONE
    return joined
