"""Who a heartbeat is from: a member that is known, one that joins, or one that must be turned away.

A member is known by its id, and fenced by its epoch: it is answered only in the epoch that the coordinator knows, or in
the one before, when the answer that told it the newer one may have been lost. A static member is also known by its
group.instance.id: whoever joins under it takes the place of its last bearer, once that one has left.
"""

from quire.coordinators.group.consumer import records
from quire.coordinators.group.consumer.draft import Draft
from quire.coordinators.group.consumer.member import (
    JOINING_EPOCH,
    LEAVING_STATICALLY_EPOCH,
    Member,
    holds_only,
)
from quire.coordinators.group.consumer.reconciliation import Owned
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def check_size(draft: Draft, member_id: str, instance_id: str | None, most_members: int) -> None:
    group = draft.group
    comes_back = member_id in group.members or (
        instance_id is not None and group.static_member(instance_id) is not None
    )
    if len(group.members) >= most_members and not comes_back:
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {most_members} members.",
        )


def admit(draft: Draft, request: ConsumerGroupHeartbeatRequest, member_id: str) -> Member:
    """The member as it is, or a new one; what it means to the group is not written yet, unless it replaces another."""
    if request.instance_id is not None:
        return _admit_static(draft, request, member_id, request.instance_id)
    if request.member_epoch == JOINING_EPOCH:
        return draft.group.members.get(member_id) or Member(member_id)
    member = draft.group.member(member_id)
    check_member_epoch(member, request)
    return member


def _admit_static(draft: Draft, request: ConsumerGroupHeartbeatRequest, member_id: str, instance_id: str) -> Member:
    bearer = draft.group.static_member(instance_id)
    if request.member_epoch != JOINING_EPOCH:
        member = known_bearer(draft, instance_id, member_id)
        check_member_epoch(member, request)
        return member
    if bearer is None:
        return draft.group.members.get(member_id) or Member(member_id)
    has_left = bearer.current.member_epoch == LEAVING_STATICALLY_EPOCH
    if bearer.member_id == member_id and not has_left:
        return bearer
    if not has_left and not bearer.is_classic:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {bearer.member_id} member.",
        )
    return replace_static(draft, bearer, member_id)


def replace_static(draft: Draft, bearer: Member, member_id: str) -> Member:
    """The one that joins goes on where the other stopped: no rebalance for it."""
    current = bearer.current._replace(member_epoch=JOINING_EPOCH, previous_member_epoch=JOINING_EPOCH)
    member = Member(member_id, bearer.subscription, current)
    group_id = draft.group.group_id
    if member_id != bearer.member_id:
        target = draft.group.targets.get(bearer.member_id, {})
        draft.write(
            *records.member_tombstones(group_id, bearer.member_id),
            records.member_metadata(group_id, member_id, member.subscription),
            records.target_assignment(group_id, member_id, target),
        )
    draft.write(records.current_assignment(group_id, member_id, current))
    return member


def known_bearer(draft: Draft, instance_id: str, member_id: str) -> Member:
    """The static member, unless another has taken its place."""
    bearer = draft.group.static_member(instance_id)
    if bearer is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if bearer.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {bearer.member_id}.",
        )
    return bearer


def check_member_epoch(member: Member, request: ConsumerGroupHeartbeatRequest) -> None:
    epoch, current = request.member_epoch, member.current
    if epoch == current.member_epoch:
        return
    if epoch < current.member_epoch and epoch == current.previous_member_epoch:
        owned = owned_partitions(request)
        if owned is not None and holds_only(current.assigned, owned):
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
