"""A classic group as it is written down, and back: one record has all of it."""

from collections.abc import Mapping
from copy import copy

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.member import Member
from quire.coordinators.group.classic.state import ClassicState
from quire.coordinators.runtime.record import StateRecord
from quire.protocol.messages.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata

VERSION = 3
"""What Apache Kafka 4.3 writes, so that older nodes can read it; version 4 has the same content."""

NOBODY = ""


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes] | None = None) -> StateRecord:
    """`assignments` by member id, with nothing for whom it leaves out; without it, as they are."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.state_since_ms,
        members=[
            _member_value(
                member,
                member.protocols[group.protocol_name or ""],
                member.assignment if assignments is None else assignments.get(member.member_id, b""),
            )
            for member in group.members.values()
        ],
    )
    return StateRecord(GroupMetadataKey(group=group.group_id), value, VERSION)


def renamed_record(group: ClassicGroup, member: Member) -> StateRecord | None:
    """What the log says of the group, with the static member's new id in place of the one it has there; None where it
    is not there. What else has changed since is a round's, and written at its end."""
    if group.written is None or not member.is_static:
        return None
    value = copy(group.written)
    for index, before in enumerate(value.members):
        if before.group_instance_id == member.instance_id:
            renamed = copy(before)
            renamed.member_id = member.member_id
            value.members = [*value.members[:index], renamed, *value.members[index + 1 :]]
            value.leader = member.member_id if value.leader == before.member_id else value.leader
            return StateRecord(GroupMetadataKey(group=group.group_id), value, VERSION)
    return None


def _member_value(member: Member, subscription: bytes, assignment: bytes) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=subscription,
        assignment=assignment,
    )


def is_about_the_present(group: ClassicGroup, value: GroupMetadataValue) -> bool:
    """Whether the group is as `value` says already, but for the assignments: then it has just written that itself, and
    knows more (who waits, what else members support)."""
    return (
        group.generation == value.generation
        and group.leader_id == value.leader
        and group.members.keys() == {member.member_id for member in value.members}
    )


def is_about_the_past(group: ClassicGroup, value: GroupMetadataValue) -> bool:
    """Whether it is a `renamed_record`: the group is in a later round, and knows the new id."""
    return group.state is not ClassicState.STABLE and group.assigned_generation == value.generation


def take_assignments(group: ClassicGroup, value: GroupMetadataValue) -> None:
    group.written = value
    for written in value.members:
        group.members[written.member_id].assignment = written.assignment


def restore(group: ClassicGroup, value: GroupMetadataValue) -> None:
    """Makes the group what `value` says, whatever it was; nobody may wait in it. If its leader is no member, it has
    none."""
    for member in list(group.members.values()):
        group.remove(member)
    group.leader_id = value.leader or NOBODY
    for written in value.members:
        instance_id = written.group_instance_id
        if written.member_id in group.members or instance_id in group.static_members:
            continue  # Nobody writes that; a log that says so all the same must not keep its shard from loading.
        group.add(_member(written, value.protocol or ""), value.protocol_type)
    if group.leader_id not in group.members:
        group.leader_id = None
    group.protocol_type = value.protocol_type
    group.protocol_name = value.protocol
    group.written = value
    group.generation = value.generation
    group.state = ClassicState.STABLE if group.members else ClassicState.EMPTY
    group.state_since_ms = value.current_state_timestamp


def _member(written: MemberMetadata, protocol_name: str) -> Member:
    """Of what it supports only the protocol that was in use is known, until it joins again."""
    return Member(
        written.member_id,
        instance_id=written.group_instance_id,
        client_id=written.client_id,
        client_host=written.client_host,
        session_timeout_ms=written.session_timeout,
        rebalance_timeout_ms=written.rebalance_timeout if written.rebalance_timeout >= 0 else written.session_timeout,
        protocols={protocol_name: written.subscription},
        assignment=written.assignment,
    )
