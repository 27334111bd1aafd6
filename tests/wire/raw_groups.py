"""Single requests of the classic group protocol, in any version, for tests without a client.

A join waits for the other members of the group, so it can be sent and received separately: `begin_join`,
`Waiting.join`.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quire.protocol.codec import encode
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from quire.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from quire.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from quire.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from quire.testing import WireConnection

JOIN_NEWEST, SYNC_NEWEST, HEARTBEAT_NEWEST, LEAVE_NEWEST = 9, 5, 4, 5
ASKS_FOR_A_MEMBER_ID_FROM = 4
KNOWS_INSTANCES_FROM = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "LeaveGroup": 3}


def subscription(*topics: str, version: int = 3, user_data: bytes | None = None) -> bytes:
    """The subscription of a member of a consumer group, as clients encode it."""
    return struct.pack(">h", version) + encode(
        ConsumerProtocolSubscription(topics=list(topics), user_data=user_data), version
    )


RANGE = {"range": subscription("anything")}


def join_request(
    group: str,
    *,
    member_id: str = "",
    instance: str | None = None,
    session_timeout_ms: int = 10_000,
    rebalance_timeout_ms: int = 10_000,
    protocol_type: str = "consumer",
    protocols: Mapping[str, bytes] = RANGE,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols.items()],
    )


@dataclass(slots=True)
class Waiting:
    """A join or sync that was sent and is not answered yet."""

    connection: WireConnection
    version: int
    correlation_id: int

    def join(self) -> JoinGroupResponse:
        return self.connection.receive(JoinGroupResponse, self.version, self.correlation_id)

    def sync(self) -> SyncGroupResponse:
        return self.connection.receive(SyncGroupResponse, self.version, self.correlation_id)


def begin_join(connection: WireConnection, group: str, *, version: int = JOIN_NEWEST, **more: Any) -> Waiting:
    return Waiting(connection, version, connection.send(join_request(group, **more), version))


def join(connection: WireConnection, group: str, *, version: int = JOIN_NEWEST, **more: Any) -> JoinGroupResponse:
    """One JoinGroup and its response, with or without an error."""
    return begin_join(connection, group, version=version, **more).join()


def member_id_for(connection: WireConnection, group: str, **more: Any) -> str:
    """The member id with which a new dynamic member must join."""
    answer = join(connection, group, **more)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED, answer
    return answer.member_id


def begin_join_as_new(connection: WireConnection, group: str, **more: Any) -> Waiting:
    return begin_join(connection, group, member_id=member_id_for(connection, group, **more), **more)


def sync_request(
    group: str,
    joined: JoinGroupResponse,
    assignments: Mapping[str, bytes] | None = None,
    *,
    instance: str | None = None,
    protocol_type: str | None = "",
    protocol_name: str | None = "",
) -> SyncGroupRequest:
    """From version 5 on the protocol must be named; the default is that of the join."""
    given = (assignments or {}).items()
    return SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=instance,
        protocol_type=(joined.protocol_type or "consumer") if protocol_type == "" else protocol_type,
        protocol_name=(joined.protocol_name or "range") if protocol_name == "" else protocol_name,
        assignments=[SyncGroupRequestAssignment(member_id=member, assignment=data) for member, data in given],
    )


def begin_sync(
    connection: WireConnection,
    group: str,
    joined: JoinGroupResponse,
    assignments: Mapping[str, bytes] | None = None,
    *,
    version: int = SYNC_NEWEST,
    **more: Any,
) -> Waiting:
    return Waiting(connection, version, connection.send(sync_request(group, joined, assignments, **more), version))


def sync(
    connection: WireConnection,
    group: str,
    joined: JoinGroupResponse,
    assignments: Mapping[str, bytes] | None = None,
    **more: Any,
) -> SyncGroupResponse:
    return begin_sync(connection, group, joined, assignments, **more).sync()


def heartbeat(
    connection: WireConnection,
    group: str,
    member_id: str,
    generation_id: int,
    *,
    instance: str | None = None,
    version: int = HEARTBEAT_NEWEST,
) -> ErrorCode:
    request = HeartbeatRequest(
        group_id=group, generation_id=generation_id, member_id=member_id, group_instance_id=instance
    )
    return ErrorCode(connection.call(request, version, HeartbeatResponse).error_code)


def leave(
    connection: WireConnection, group: str, *members: tuple[str, str | None], version: int = LEAVE_NEWEST
) -> LeaveGroupResponse:
    """Members are (member id, group instance id)."""
    named = [MemberIdentity(member_id=member, group_instance_id=instance) for member, instance in members]
    if version < KNOWS_INSTANCES_FROM["LeaveGroup"]:
        request = LeaveGroupRequest(group_id=group, member_id=members[0][0])
    else:
        request = LeaveGroupRequest(group_id=group, members=named)
    return connection.call(request, version, LeaveGroupResponse)


def has_coordinator(connection: WireConnection, key: str = "anyone", key_type: int = 0) -> bool:
    """Whether a group, or a transactional id (1), has a coordinator; the first request creates the internal topic."""
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    (found,) = connection.call(request, 4, FindCoordinatorResponse).coordinators
    return found.error_code == ErrorCode.NONE


def stable_alone(
    connection: WireConnection, group: str, assignment: bytes = b"everything", **more: Any
) -> JoinGroupResponse:
    """Creates a stable group of one member, which leads it."""
    joined = join(connection, group, **more)
    if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        joined = join(connection, group, **(more | {"member_id": joined.member_id}))
    assert joined.error_code == ErrorCode.NONE, joined
    instance = more.get("instance")
    synced = sync(connection, group, joined, {joined.member_id: assignment}, instance=instance)
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, assignment), synced
    return joined


def described(connection: WireConnection, group: str, version: int = 6) -> DescribedGroup:
    (found,) = connection.call(DescribeGroupsRequest(groups=[group]), version, DescribeGroupsResponse).groups
    return found


def state_of(connection: WireConnection, group: str) -> str:
    return described(connection, group).group_state
