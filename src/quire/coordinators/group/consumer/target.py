"""The target assignment of a group: when a new one is due, and how it is computed."""

from collections.abc import Callable, Iterable, Mapping

from quire.coordinators.group.consumer import records
from quire.coordinators.group.consumer.assignors import ASSIGNORS, AssignedMember, Assignment
from quire.coordinators.group.consumer.assignors.turns import Pace, Turns
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.consumer_result_builder import ConsumerResultBuilder
from quire.coordinators.group.consumer.member import Subscription
from quire.coordinators.runtime.record import StateRecord
from quire.metadata.image import ClusterImage

_MOST_AT_ONCE = 4_000
"""Partitions and subscribed topics whose target takes some milliseconds."""


def is_due(group: ConsumerGroup, interval_ms: int, now_ms: int) -> bool:
    """Whether the group needs a new target and may have one. Changes within the interval share one."""
    if group.group_epoch <= group.assignment_epoch:
        return False
    if not group.targets:
        return True  # No member has partitions yet, so nothing would move twice.
    made_ms = group.assignment_timestamp_ms
    # If the wall clock was set back, the target must not wait until the clock has caught up.
    return made_ms == 0 or not made_ms <= now_ms < made_ms + interval_ms


def due_in_ms(group: ConsumerGroup, interval_ms: int, now_ms: int) -> int:
    """How long the group must wait for a target that it needs; 0 if it does not wait."""
    if group.group_epoch <= group.assignment_epoch or is_due(group, interval_ms, now_ms):
        return 0
    return group.assignment_timestamp_ms + interval_ms - now_ms


def is_large(group: ConsumerGroup, image: ClusterImage) -> bool:
    """Whether the computation takes longer than a heartbeat may take."""
    subscribed = [image.topic(name) for name in group.subscribed_topics()]
    work = sum(len(topic.partitions) for topic in subscribed if topic is not None)
    for member in group.members.values():
        resolved = group.resolved.get(member.subscription.topic_regex)
        work += len(member.subscription.topic_names) + (0 if resolved is None else len(resolved.topics))
    return work > _MOST_AT_ONCE


def write_target(builder: ConsumerResultBuilder, targets: Mapping[str, Assignment], now_ms: int) -> None:
    """Writes records only for members whose target changes."""
    group = builder.group
    builder.write(*target_records(group, targets, sorted(targets)))
    builder.write(records.target_metadata(group.group_id, group.group_epoch, now_ms))


def target_records(
    group: ConsumerGroup, targets: Mapping[str, Assignment], member_ids: Iterable[str]
) -> list[StateRecord]:
    """For the members that still exist and whose target changes."""
    return [
        records.target_assignment(group.group_id, member_id, targets[member_id])
        for member_id in member_ids
        if member_id in group.members and group.targets.get(member_id) != targets[member_id]
    ]


def compute_target(
    group: ConsumerGroup, assignor: str, image: Callable[[], ClusterImage]
) -> Turns[Mapping[str, Assignment]]:
    """The target for the current members.

    If members or topics change between turns, the group gets a new epoch, and another target is computed for that.
    """
    pace = Pace()
    topics_by_subscription: dict[tuple[tuple[str, ...], str], frozenset[bytes]] = {}
    counts: dict[bytes, int] = {}
    members: dict[str, AssignedMember] = {}
    targets = dict(group.targets)
    for member_id, member in list(group.members.items()):
        subscription = member.subscription
        same = subscription.topic_names, subscription.topic_regex
        topics = topics_by_subscription.get(same)
        if topics is None:
            topics = topics_by_subscription[same] = subscribed_ids(group, subscription, image())
            by_id = image().topics_by_id
            counts.update((topic_id, len(by_id[topic_id].partitions)) for topic_id in topics if topic_id not in counts)
        members[member_id] = AssignedMember(topics, targets.get(member_id, {}))
        if pace.is_turn_over(len(topics)):
            yield
    return (yield from ASSIGNORS[assignor](members, counts))


def subscribed_ids(group: ConsumerGroup, subscription: Subscription, image: ClusterImage) -> frozenset[bytes]:
    """The ids of the existing topics in the subscription."""
    names = group.topics_of(subscription)
    return frozenset(topic.topic_id for name in names if (topic := image.topic(name)) is not None)
