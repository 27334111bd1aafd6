"""The target assignment of a group: when it is time for a new one, and what it is."""

from collections.abc import Callable, Iterable, Mapping

from quire.coordinators.group.consumer import records
from quire.coordinators.group.consumer.assignors import ASSIGNORS, AssignedMember, Assignment
from quire.coordinators.group.consumer.assignors.turns import Pace, Turns
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.draft import Draft
from quire.coordinators.group.consumer.member import Subscription
from quire.coordinators.runtime.record import StateRecord
from quire.metadata.image import ClusterImage

_MOST_AT_ONCE = 4_000
"""Partitions and subscriptions to topics: their target takes some milliseconds."""


def is_due(group: ConsumerGroup, interval_ms: int, now_ms: int) -> bool:
    """Whether the group needs a new target and may have one: several changes within the interval share one."""
    if group.group_epoch <= group.assignment_epoch:
        return False
    if not group.targets:
        return True  # Nobody has anything yet, so nothing would have to move once more.
    made_ms = group.assignment_timestamp_ms
    # A wall clock that was set back must not put this off until it is there again.
    return made_ms == 0 or not made_ms <= now_ms < made_ms + interval_ms


def due_in_ms(group: ConsumerGroup, interval_ms: int, now_ms: int) -> int:
    """How long the group still waits for a target that it needs; 0 where it does not wait."""
    if group.group_epoch <= group.assignment_epoch or is_due(group, interval_ms, now_ms):
        return 0
    return group.assignment_timestamp_ms + interval_ms - now_ms


def is_large(group: ConsumerGroup, image: ClusterImage) -> bool:
    """Whether a target takes longer to make than a heartbeat may take."""
    subscribed = [image.topic(name) for name in group.subscribed_topics()]
    work = sum(len(topic.partitions) for topic in subscribed if topic is not None)
    for member in group.members.values():
        resolved = group.resolved.get(member.subscription.topic_regex)
        work += len(member.subscription.topic_names) + (0 if resolved is None else len(resolved.topics))
    return work > _MOST_AT_ONCE


def write_target(draft: Draft, targets: Mapping[str, Assignment], now_ms: int) -> None:
    """Only members whose target changes get a record."""
    group = draft.group
    draft.write(*target_records(group, targets, sorted(targets)))
    draft.write(records.target_metadata(group.group_id, group.group_epoch, now_ms))


def target_records(
    group: ConsumerGroup, targets: Mapping[str, Assignment], member_ids: Iterable[str]
) -> list[StateRecord]:
    """For those of these members that are still there, and whose target is another than before."""
    return [
        records.target_assignment(group.group_id, member_id, targets[member_id])
        for member_id in member_ids
        if member_id in group.members and group.targets.get(member_id) != targets[member_id]
    ]


def compute_target(
    group: ConsumerGroup, assignor: str, image: Callable[[], ClusterImage]
) -> Turns[Mapping[str, Assignment]]:
    """For the members as they are now. Between turns they may change, and so may the topics: then the group is in
    another epoch, for which another target will be made."""
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
    """The topics that a member subscribes to and that exist."""
    names = group.topics_of(subscription)
    return frozenset(topic.topic_id for name in names if (topic := image.topic(name)) is not None)
