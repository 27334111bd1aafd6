"""ConsumerGroup: the state of one group. Only its records change it, apart from `classic_successor`.

The group also keeps what is derived from members and targets and needed often: the owners of partitions, and the
subscribed topics. After compaction, records may come in an order in which they were never written. So a record removes
only what still belongs to its member.
"""

from collections.abc import Callable, Iterable
from typing import Any

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.consumer import records
from quire.coordinators.group.consumer.assignors import Assignment
from quire.coordinators.group.consumer.commit_rights import check_commit, check_epoch
from quire.coordinators.group.consumer.member import (
    LEAVING_EPOCH,
    CurrentAssignment,
    Held,
    Member,
    Subscription,
    to_assignment,
)
from quire.coordinators.group.consumer.records import ResolvedRegex
from quire.coordinators.group.group import CheckPartition, GroupType
from quire.coordinators.runtime.record import StateRecord
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages import group_records as messages

GONE = CurrentAssignment(LEAVING_EPOCH, LEAVING_EPOCH)
"""The assignment of a member while its tombstones are replayed."""


class ConsumerGroup:
    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "classic_successor",
        "group_epoch",
        "group_id",
        "has_partition_metadata",
        "members",
        "metadata_hash",
        "owners",
        "resolved",
        "static_members",
        "subscribed_names",
        "subscribed_regexes",
        "targets",
    )

    type = GroupType.CONSUMER
    protocol_type = "consumer"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = 0
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.assignment_timestamp_ms = 0
        """When the target was computed; 0 if unknown."""
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by group.instance.id."""
        self.targets: dict[str, Assignment] = {}
        self.owners: dict[bytes, dict[int, str]] = {}
        """The member that owns a partition, or has not confirmed its revocation yet."""
        self.subscribed_names: dict[str, int] = {}
        self.subscribed_regexes: dict[str, int] = {}
        """The number of members by topic name and by regular expression."""
        self.resolved: dict[str, ResolvedRegex] = {}
        self.has_partition_metadata = False
        self.classic_successor: ClassicGroup | None = None
        """While this group is empty: the classic group that replaces it if a client joins with one of the member ids
        that it has given out. No record has it."""

    def copy(self) -> "ConsumerGroup":
        """An independent copy."""
        copied = ConsumerGroup(self.group_id)
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(copied, name, dict(value) if isinstance(value, dict) else value)
        copied.owners = {topic_id: dict(partitions) for topic_id, partitions in self.owners.items()}
        return copied

    # --- Subscriptions and assignments

    def subscribed_topics(self) -> set[str]:
        topics = set(self.subscribed_names)
        for regex in self.subscribed_regexes:
            if regex in self.resolved:
                topics |= self.resolved[regex].topics
        return topics

    def topics_of(self, subscription: Subscription) -> set[str]:
        """By name and by regular expression. An unresolved expression matches nothing."""
        topics = set(subscription.topic_names)
        if subscription.topic_regex in self.resolved:
            topics |= self.resolved[subscription.topic_regex].topics
        return topics

    def static_member(self, instance_id: str) -> Member | None:
        return self.members.get(self.static_members.get(instance_id, ""))

    def is_free_for(self, member_id: str) -> Callable[[bytes, int], bool]:
        owners = self.owners

        def is_free(topic_id: bytes, partition: int) -> bool:
            return owners.get(topic_id, {}).get(partition, member_id) == member_id

        return is_free

    def preferred_assignor(self) -> str | None:
        """The assignor that most members prefer; the first by name if there are several."""
        votes: dict[str, int] = {}
        for member in self.members.values():
            name = member.subscription.server_assignor
            if name is not None:
                votes[name] = votes.get(name, 0) + 1
        return min(votes, key=lambda name: (-votes[name], name)) if votes else None

    @property
    def is_settled(self) -> bool:
        """Whether all members have the assignment of the newest target."""
        return self.group_epoch == self.assignment_epoch and all(
            to_assignment(member.current.assigned) == self.targets.get(member_id, {})
            for member_id, member in self.members.items()
        )

    # --- The Group protocol class

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.current.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    def check_offset_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, is_transactional: bool, api_version: int
    ) -> CheckPartition | None:
        if generation < 0 and not self.members:
            return None
        if is_transactional and generation == -1 and not member_id and instance_id is None:
            return None
        return check_commit(self.member(member_id), generation, is_transactional or api_version >= 9)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is not None or member_epoch >= 0:
            check_epoch(self.member(member_id or ""), member_epoch)

    def check_delete(self) -> None:
        if self.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"Group {self.group_id} has members: stop them first.")

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_names or topic in self.subscribed_topics()

    def offsets_unused_since(self, commit_ms: int) -> int | None:
        """The last target of an empty group has the time at which its last member left."""
        return commit_ms if self.members else max(commit_ms, self.assignment_timestamp_ms)

    def tombstones(self) -> list[StateRecord]:
        return records.group_tombstones(
            self.group_id,
            sorted(self.members),
            sorted(self.resolved),
            has_partition_metadata=self.has_partition_metadata,
        )

    def member(self, member_id: str) -> Member:
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    # --- Records

    def apply(self, record: StateRecord) -> None:
        _APPLY[type(record.key)](self, record.key, record.value)

    def _apply_group(self, key: Any, value: messages.ConsumerGroupMetadataValue | None) -> None:
        # The tombstone of a group is handled by `ConsumerGroups`.
        if value is not None:
            self.group_epoch, self.metadata_hash = value.epoch, value.metadata_hash

    def _apply_partitions(self, key: Any, value: messages.ConsumerGroupPartitionMetadataValue | None) -> None:
        self.has_partition_metadata = value is not None

    def _apply_member(
        self,
        key: messages.ConsumerGroupMemberMetadataKey,
        value: messages.ConsumerGroupMemberMetadataValue | None,
    ) -> None:
        known = self.members.get(key.member_id)
        if known is not None:
            self._count(known.subscription, -1)
            if known.instance_id is not None and self.static_members.get(known.instance_id) == key.member_id:
                del self.static_members[known.instance_id]
        if value is not None:
            subscription = records.subscription_of(value)
            self.members[key.member_id] = (known or Member(key.member_id))._replace(subscription=subscription)
            self._count(subscription, 1)
            if subscription.instance_id is not None:
                self.static_members[subscription.instance_id] = key.member_id
        elif known is not None:
            self._remove_ownership(known)
            del self.members[key.member_id]

    def _apply_target_epoch(self, key: Any, value: messages.ConsumerGroupTargetAssignmentMetadataValue | None) -> None:
        self.assignment_epoch = 0 if value is None else value.assignment_epoch
        self.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp

    def _apply_target(
        self,
        key: messages.ConsumerGroupTargetAssignmentMemberKey,
        value: messages.ConsumerGroupTargetAssignmentMemberValue | None,
    ) -> None:
        if value is None:
            self.targets.pop(key.member_id, None)
        else:
            self.targets[key.member_id] = records.target_of(value)

    def _apply_current(
        self,
        key: messages.ConsumerGroupCurrentMemberAssignmentKey,
        value: messages.ConsumerGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        known = self.members.get(key.member_id)
        if known is None and value is None:
            return
        member = known or Member(key.member_id)
        self._remove_ownership(member)
        current = GONE if value is None else records.current_of(value)
        self.members[key.member_id] = member._replace(current=current)
        for held in (current.assigned, current.revoking):
            for topic_id, partitions in held.items():
                self.owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, key.member_id))

    def _apply_regex(
        self,
        key: messages.ConsumerGroupRegularExpressionKey,
        value: messages.ConsumerGroupRegularExpressionValue | None,
    ) -> None:
        if value is None:
            self.resolved.pop(key.regular_expression, None)
        else:
            self.resolved[key.regular_expression] = records.resolved_of(value)

    def _count(self, subscription: Subscription, by: int) -> None:
        _add(self.subscribed_names, subscription.topic_names, by)
        if subscription.topic_regex:
            _add(self.subscribed_regexes, (subscription.topic_regex,), by)

    def _remove_ownership(self, member: Member) -> None:
        for held in (member.current.assigned, member.current.revoking):
            _remove_owner(self.owners, held, member.member_id)


def _add(counts: dict[str, int], names: Iterable[str], by: int) -> None:
    for name in names:
        count = counts.get(name, 0) + by
        if count:
            counts[name] = count
        else:
            del counts[name]


def _remove_owner(owners: dict[bytes, dict[int, str]], held: Held, member_id: str) -> None:
    for topic_id, partitions in held.items():
        of_topic = owners.get(topic_id, {})
        for partition in partitions:
            if of_topic.get(partition) == member_id:
                del of_topic[partition]
        if not of_topic:
            owners.pop(topic_id, None)


_APPLY: dict[type, Callable[[ConsumerGroup, Any, Any], None]] = {
    messages.ConsumerGroupMetadataKey: ConsumerGroup._apply_group,
    messages.ConsumerGroupPartitionMetadataKey: ConsumerGroup._apply_partitions,
    messages.ConsumerGroupMemberMetadataKey: ConsumerGroup._apply_member,
    messages.ConsumerGroupTargetAssignmentMetadataKey: ConsumerGroup._apply_target_epoch,
    messages.ConsumerGroupTargetAssignmentMemberKey: ConsumerGroup._apply_target,
    messages.ConsumerGroupCurrentMemberAssignmentKey: ConsumerGroup._apply_current,
    messages.ConsumerGroupRegularExpressionKey: ConsumerGroup._apply_regex,
}
