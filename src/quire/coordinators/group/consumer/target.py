"""The target assignment of a group: when it is time for a new one, and what it is."""

from collections.abc import Mapping

from quire.coordinators.group.consumer import records
from quire.coordinators.group.consumer.assignors import ASSIGNORS, AssignedMember, Assignment
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.draft import Draft
from quire.coordinators.group.consumer.member import Subscription
from quire.metadata.image import ClusterImage


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


def write_target(draft: Draft, assignor: str, image: ClusterImage, now_ms: int) -> None:
    """Only members whose target changes get a record."""
    group = draft.group
    before = dict(group.targets)
    targets = compute_target(group, assignor, image)
    for member_id in sorted(targets):
        if before.get(member_id) != targets[member_id]:
            draft.write(records.target_assignment(group.group_id, member_id, targets[member_id]))
    draft.write(records.target_metadata(group.group_id, group.group_epoch, now_ms))


def compute_target(group: ConsumerGroup, assignor: str, image: ClusterImage) -> Mapping[str, Assignment]:
    topics_by_subscription: dict[tuple[tuple[str, ...], str], frozenset[bytes]] = {}
    counts: dict[bytes, int] = {}
    members: dict[str, AssignedMember] = {}
    for member_id, member in group.members.items():
        subscription = member.subscription
        same = subscription.topic_names, subscription.topic_regex
        topics = topics_by_subscription.get(same)
        if topics is None:
            topics = topics_by_subscription[same] = subscribed_ids(group, subscription, image)
            counts.update((topic_id, len(image.topics_by_id[topic_id].partitions)) for topic_id in topics)
        members[member_id] = AssignedMember(topics, group.targets.get(member_id, {}))
    return ASSIGNORS[assignor](members, counts)


def subscribed_ids(group: ConsumerGroup, subscription: Subscription, image: ClusterImage) -> frozenset[bytes]:
    """The topics that a member subscribes to and that exist."""
    names = group.topics_of(subscription)
    return frozenset(topic.topic_id for name in names if (topic := image.topic(name)) is not None)
