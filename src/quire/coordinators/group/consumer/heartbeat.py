"""A heartbeat that may change something: its four steps, from the request to the response."""

from typing import NamedTuple

from quire.coordinators.group.consumer.changes import GroupChanges
from quire.coordinators.group.consumer.consumer_result_builder import ConsumerResultBuilder
from quire.coordinators.group.consumer.member import JOINING_EPOCH, Held, Member, MemberState, Subscription
from quire.coordinators.group.consumer.membership import get_or_create_member, owned_partitions
from quire.coordinators.group.consumer.requests import is_full
from quire.coordinators.runtime.machine import Caller
from quire.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)


class HeartbeatStep(NamedTuple):
    """The member before and after a heartbeat."""

    before: Member
    member: Member
    is_late: bool
    """The client sent the request before it knew its current epoch: a response was lost, or the request was delayed."""
    with_assignment: bool

    @property
    def assignment_changed(self) -> bool:
        return self.before.current.assigned != self.member.current.assigned


def take_step(
    builder: ConsumerResultBuilder,
    request: ConsumerGroupHeartbeatRequest,
    caller: Caller,
    changes: GroupChanges,
    member_id: str,
    now_ms: int,
) -> HeartbeatStep:
    before = get_or_create_member(builder, request, member_id)
    known_epoch = before.current.member_epoch
    is_late = known_epoch > JOINING_EPOCH and request.member_epoch != known_epoch
    changes.write_member(builder, before, _updated_subscription(before.subscription, request, caller), now_ms)
    changes.write_target(builder, now_ms)
    # A subscription that a late request has changed before may not have been applied yet, so it counts once more.
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    # In state UNKNOWN even a late report counts, because the current assignment is not known.
    takes_no_step = is_late and before.current.state != MemberState.UNKNOWN
    write = changes.write_repeated if takes_no_step else changes.write_reconciled
    member = write(builder, member_id, owned_partitions(request), subscription_changed=subscribes)
    step = HeartbeatStep(before, member, is_late, request.member_epoch == JOINING_EPOCH or is_late or is_full(request))
    return step._replace(with_assignment=True) if step.assignment_changed else step


def heartbeat_response(
    member: Member, heartbeat_interval_ms: int, *, with_assignment: bool
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.current.member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms,
        assignment=_assignment(member.current.assigned) if with_assignment else None,
    )


def _assignment(assigned: Held) -> Assignment:
    return Assignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=sorted(assigned[topic_id]))
            for topic_id in sorted(assigned)
        ]
    )


def _updated_subscription(known: Subscription, request: ConsumerGroupHeartbeatRequest, caller: Caller) -> Subscription:
    """Fields that the request leaves out keep their values."""
    names = request.subscribed_topic_names
    regex = request.subscribed_topic_regex
    return Subscription(
        client_id=caller.client_id,
        client_host=caller.client_host,
        topic_names=known.topic_names if names is None else tuple(sorted(set(names))),
        topic_regex=known.topic_regex if regex is None else regex,
        rebalance_timeout_ms=(
            known.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        server_assignor=known.server_assignor if request.server_assignor is None else request.server_assignor,
        instance_id=known.instance_id if request.instance_id is None else request.instance_id,
        rack_id=known.rack_id if request.rack_id is None else request.rack_id,
    )
