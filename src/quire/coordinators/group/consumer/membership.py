"""Finds the member that sent a heartbeat, adds a new one, or refuses it.

The member id identifies a member, and the member epoch fences it. A heartbeat must have the current epoch, or the
previous one, because the response with the current epoch may have been lost. A static member is also identified by its
group.instance.id: a member that joins with it replaces the previous one after that one has left.
"""

from quire.coordinators.group.consumer import records
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.consumer_result_builder import ConsumerResultBuilder
from quire.coordinators.group.consumer.member import (
    JOINING_EPOCH,
    LEAVING_STATICALLY_EPOCH,
    Member,
)
from quire.coordinators.group.consumer.reconciliation import Owned
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def check_size(group: ConsumerGroup, member_id: str, instance_id: str | None, most_members: int) -> None:
    is_known = member_id in group.members or (instance_id is not None and group.static_member(instance_id) is not None)
    if len(group.members) >= most_members and not is_known:
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {most_members} members.",
        )


def get_or_create_member(
    builder: ConsumerResultBuilder, request: ConsumerGroupHeartbeatRequest, member_id: str
) -> Member:
    """Writes nothing, unless the member replaces another one."""
    if request.instance_id is not None:
        return _get_or_create_static_member(builder, request, member_id, request.instance_id)
    if request.member_epoch == JOINING_EPOCH:
        return builder.group.members.get(member_id) or Member(member_id)
    member = builder.group.member(member_id)
    check_member_epoch(member, request)
    return member


def _get_or_create_static_member(
    builder: ConsumerResultBuilder, request: ConsumerGroupHeartbeatRequest, member_id: str, instance_id: str
) -> Member:
    existing = builder.group.static_member(instance_id)
    if request.member_epoch != JOINING_EPOCH:
        member = check_static_member(builder.group, instance_id, member_id)
        check_member_epoch(member, request)
        return member
    if existing is None:
        return builder.group.members.get(member_id) or Member(member_id)
    has_left = existing.current.member_epoch == LEAVING_STATICALLY_EPOCH
    if existing.member_id == member_id and not has_left:
        return existing
    if not has_left and not existing.is_classic:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {existing.member_id} member.",
        )
    return replace_static_member(builder, existing, member_id)


def replace_static_member(builder: ConsumerResultBuilder, existing: Member, member_id: str) -> Member:
    """The new member takes over subscription, target and assignment, so there is no rebalance."""
    current = existing.current._replace(member_epoch=JOINING_EPOCH, previous_member_epoch=JOINING_EPOCH)
    member = Member(member_id, existing.subscription, current)
    group_id = builder.group.group_id
    if member_id != existing.member_id:
        target = builder.group.targets.get(existing.member_id, {})
        builder.write(
            *records.member_tombstones(group_id, existing.member_id),
            records.member_metadata(group_id, member_id, member.subscription),
            records.target_assignment(group_id, member_id, target),
        )
    builder.write(records.current_assignment(group_id, member_id, current))
    return member


def check_static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> Member:
    """The static member; an error if another member has replaced it."""
    existing = group.static_member(instance_id)
    if existing is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if existing.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {existing.member_id}.",
        )
    return existing


def check_member_epoch(member: Member, request: ConsumerGroupHeartbeatRequest) -> None:
    epoch, current = request.member_epoch, member.current
    if epoch == current.member_epoch:
        return
    if epoch < current.member_epoch and epoch == current.previous_member_epoch:
        owned = owned_partitions(request)
        if owned is not None and current.owns(owned):
            return
    difference = "greater" if epoch > current.member_epoch else "smaller"
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {difference} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({current.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def owned_partitions(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    owned = request.topic_partitions
    return None if owned is None else [(each.topic_id, each.partitions) for each in owned]
