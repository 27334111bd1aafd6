"""One heartbeat that changes something, or may: the four steps, from the request to the answer."""

from typing import NamedTuple

from quire.coordinators.group.consumer.admission import admit, owned_partitions
from quire.coordinators.group.consumer.changes import GroupChanges
from quire.coordinators.group.consumer.draft import Draft
from quire.coordinators.group.consumer.member import JOINING_EPOCH, Held, Member, MemberState, Subscription
from quire.coordinators.group.consumer.requests import is_full
from quire.coordinators.runtime.machine import Caller
from quire.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)


class Step(NamedTuple):
    """What a heartbeat did for a member."""

    before: Member
    member: Member
    is_late: bool
    """The request was made before the member knew its newest epoch: by a member whose answer was lost, or long ago."""
    tell_assignment: bool

    @property
    def assignment_changed(self) -> bool:
        return self.before.current.assigned != self.member.current.assigned


def take_step(
    draft: Draft,
    request: ConsumerGroupHeartbeatRequest,
    caller: Caller,
    changes: GroupChanges,
    member_id: str,
    now_ms: int,
) -> Step:
    before = admit(draft, request, member_id)
    known_epoch = before.current.member_epoch
    is_late = known_epoch > JOINING_EPOCH and request.member_epoch != known_epoch
    changed = changes.write_member(draft, before, _said(before.subscription, request, caller), now_ms)
    changes.write_target(draft, now_ms)
    # What a late request says of owned partitions was true once: only a member that knows what it was told last can
    # confirm that it has given something up. Except where nobody knows what it was told: then it has to start anew.
    is_believed = not is_late or before.current.state == MemberState.UNKNOWN
    owned = owned_partitions(request) if is_believed else None
    member = changes.write_reconciled(draft, member_id, owned, subscription_changed=changed)
    step = Step(before, member, is_late, request.member_epoch == JOINING_EPOCH or is_late or is_full(request))
    return step._replace(tell_assignment=True) if step.assignment_changed else step


def answer(member: Member, heartbeat_interval_ms: int, *, tell_assignment: bool) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.current.member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms,
        assignment=_assignment(member.current.assigned) if tell_assignment else None,
    )


def _assignment(assigned: Held) -> Assignment:
    return Assignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=sorted(assigned[topic_id]))
            for topic_id in sorted(assigned)
        ]
    )


def _said(known: Subscription, request: ConsumerGroupHeartbeatRequest, caller: Caller) -> Subscription:
    """What a request leaves out is as it was."""
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
