"""Converts a classic group to its record and back. One record has the whole group."""

from collections.abc import Mapping
from copy import copy

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.member import Member
from quire.coordinators.group.classic.state import ClassicState
from quire.coordinators.runtime.record import StateRecord
from quire.protocol.messages.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata

VERSION = 3
"""The version that Apache Kafka 4.3 writes, so that older nodes can read it. Version 4 has the same content."""

NO_LEADER = ""


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes] | None = None) -> StateRecord:
    """`assignments` by member id; members that are not in it get an empty one. None keeps the current assignments."""
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


def record_with_new_member_id(group: ClassicGroup, member: Member) -> StateRecord | None:
    """The last record of the group with the static member's new id; None if the member is not in it.

    Other changes since that record belong to the current rebalance, which writes them at its end.
    """
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


def matches_current_generation(group: ClassicGroup, value: GroupMetadataValue) -> bool:
    """Whether only the assignments differ.

    Then this coordinator has just written the record, and its group has more than the record: pending requests, and all
    protocols that members support.
    """
    return (
        group.generation == value.generation
        and group.leader_id == value.leader
        and group.members.keys() == {member.member_id for member in value.members}
    )


def is_member_id_update(group: ClassicGroup, value: GroupMetadataValue) -> bool:
    """Whether it is a `record_with_new_member_id`: the group rebalances, and has the new id already."""
    return group.state is not ClassicState.STABLE and group.assigned_generation == value.generation


def apply_assignments(group: ClassicGroup, value: GroupMetadataValue) -> None:
    group.written = value
    for written in value.members:
        group.members[written.member_id].assignment = written.assignment


def restore(group: ClassicGroup, value: GroupMetadataValue) -> None:
    """Replaces the state of the group by that of the record.

    No request may wait in the group. A leader that is not a member is dropped.
    """
    for member in list(group.members.values()):
        group.remove(member)
    group.leader_id = value.leader or NO_LEADER
    for written in value.members:
        instance_id = written.group_instance_id
        if written.member_id in group.members or instance_id in group.static_members:
            continue  # No coordinator writes this, but a damaged record must not prevent the shard from loading.
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
    """The record has only the protocol in use. The others are unknown until the member joins again."""
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
