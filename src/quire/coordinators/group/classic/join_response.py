"""The response to a member that has joined."""

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.member import Member
from quire.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember


def join_response(group: ClassicGroup, member: Member) -> JoinGroupResponse:
    """The leader gets all members, because it makes the assignment."""
    response = _response(group, member)
    if member.member_id == group.leader_id:
        response.members = _all_members(group)
    return response


def rejoined_response(
    group: ClassicGroup, member: Member, former_leader_id: str | None, api_version: int
) -> JoinGroupResponse:
    """For a static member that rejoined a stable group: the assignment stays as it is.

    Since version 9 the response can tell a leader to skip the assignment. Before, it names the leader's former member
    id as leader, so that the client acts as a follower.
    """
    response = _response(group, member)
    if api_version < 9:
        response.leader = former_leader_id or ""
    elif member.member_id == group.leader_id:
        response.members = _all_members(group)
        response.skip_assignment = True
    return response


def _response(group: ClassicGroup, member: Member) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
    )


def _all_members(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    name = group.protocol_name or ""
    return [
        JoinGroupResponseMember(
            member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.protocols[name]
        )
        for member in group.members.values()
    ]
