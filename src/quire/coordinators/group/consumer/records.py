"""The records of consumer groups as Apache Kafka 4.3 writes them: version 0, with later fields as tags.

Sets are sorted, so that the same state always has the same bytes.
"""

from collections.abc import Iterable
from typing import NamedTuple

from quire.coordinators.group.consumer.assignors import Assignment
from quire.coordinators.group.consumer.member import CurrentAssignment, Held, MemberState, Subscription
from quire.coordinators.runtime.record import StateRecord, tombstone
from quire.protocol.messages import group_records as messages


class ResolvedRegex(NamedTuple):
    """The topics that matched in the image at offset `version`."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


# --- Encoding


def group_metadata(group_id: str, epoch: int, metadata_hash: int) -> StateRecord:
    return StateRecord(
        messages.ConsumerGroupMetadataKey(group_id=group_id),
        messages.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def member_metadata(group_id: str, member_id: str, subscription: Subscription) -> StateRecord:
    return StateRecord(
        messages.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id),
        messages.ConsumerGroupMemberMetadataValue(
            instance_id=subscription.instance_id,
            rack_id=subscription.rack_id,
            client_id=subscription.client_id,
            client_host=subscription.client_host,
            subscribed_topic_names=list(subscription.topic_names),
            subscribed_topic_regex=subscription.topic_regex,
            rebalance_timeout_ms=subscription.rebalance_timeout_ms,
            server_assignor=subscription.server_assignor,
            classic_member_metadata=subscription.classic,
        ),
    )


def target_assignment(group_id: str, member_id: str, target: Assignment) -> StateRecord:
    return StateRecord(
        messages.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        messages.ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                messages.TopicPartition(topic_id=topic_id, partitions=sorted(target[topic_id]))
                for topic_id in sorted(target)
            ]
        ),
    )


def target_metadata(group_id: str, assignment_epoch: int, timestamp_ms: int) -> StateRecord:
    return StateRecord(
        messages.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        messages.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=assignment_epoch, assignment_timestamp=timestamp_ms
        ),
    )


def current_assignment(group_id: str, member_id: str, current: CurrentAssignment) -> StateRecord:
    return StateRecord(
        messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id),
        messages.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=current.member_epoch,
            previous_member_epoch=current.previous_member_epoch,
            state=current.state,
            assigned_partitions=_with_epochs(current.assigned),
            partitions_pending_revocation=_with_epochs(current.revoking),
        ),
    )


def regular_expression(group_id: str, regex: str, resolved: ResolvedRegex) -> StateRecord:
    return StateRecord(
        messages.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        messages.ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
        ),
    )


def member_tombstones(group_id: str, member_id: str) -> list[StateRecord]:
    """In the reverse order of the records that add a member."""
    return [
        tombstone(messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)),
        tombstone(messages.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)),
        tombstone(messages.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)),
    ]


def regular_expression_tombstone(group_id: str, regex: str) -> StateRecord:
    return tombstone(messages.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex))


def partition_metadata_tombstone(group_id: str) -> StateRecord:
    """Before 4.1 Kafka kept the topics of the group in a separate record."""
    return tombstone(messages.ConsumerGroupPartitionMetadataKey(group_id=group_id))


def group_tombstones(
    group_id: str, member_ids: Iterable[str], regexes: Iterable[str], *, has_partition_metadata: bool
) -> list[StateRecord]:
    by_member = [member_tombstones(group_id, member_id) for member_id in member_ids]
    return [
        *(current for current, _, _ in by_member),
        *(target for _, target, _ in by_member),
        tombstone(messages.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(metadata for _, _, metadata in by_member),
        *(regular_expression_tombstone(group_id, regex) for regex in regexes),
        *([partition_metadata_tombstone(group_id)] if has_partition_metadata else []),
        tombstone(messages.ConsumerGroupMetadataKey(group_id=group_id)),
    ]


def _with_epochs(held: Held) -> list[messages.TopicPartitions]:
    return [
        messages.TopicPartitions(
            topic_id=topic_id,
            partitions=sorted(held[topic_id]),
            assignment_epochs=[held[topic_id][partition] for partition in sorted(held[topic_id])],
        )
        for topic_id in sorted(held)
    ]


# --- Decoding


def subscription_of(value: messages.ConsumerGroupMemberMetadataValue) -> Subscription:
    return Subscription(
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=tuple(sorted(value.subscribed_topic_names)),
        topic_regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        classic=value.classic_member_metadata,
    )


def target_of(value: messages.ConsumerGroupTargetAssignmentMemberValue) -> Assignment:
    return {each.topic_id: frozenset(each.partitions) for each in value.topic_partitions if each.partitions}


def current_of(value: messages.ConsumerGroupCurrentMemberAssignmentValue) -> CurrentAssignment:
    known = value.state in MemberState.__members__.values()
    return CurrentAssignment(
        value.member_epoch,
        value.previous_member_epoch,
        MemberState(value.state) if known else MemberState.UNKNOWN,
        _held_since(value.assigned_partitions, value.member_epoch),
        _held_since(value.partitions_pending_revocation, value.member_epoch),
    )


def resolved_of(value: messages.ConsumerGroupRegularExpressionValue) -> ResolvedRegex:
    return ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)


def _held_since(partitions: list[messages.TopicPartitions], member_epoch: int) -> Held:
    """Before 4.3 Kafka did not write the epoch of each partition. The member epoch is the safe assumption."""
    held: dict[bytes, dict[int, int]] = {}
    for each in partitions:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            epochs = [max(member_epoch, 0)] * len(each.partitions)
        if each.partitions:
            held[each.topic_id] = dict(zip(each.partitions, epochs, strict=True))
    return held
