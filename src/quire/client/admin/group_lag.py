"""The lag of a group: the committed offset of each partition, its end offset, and the member that reads it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from quire.client.admin.group_descriptions import Group, Member
from quire.client.admin.groups import describe_groups
from quire.client.cluster import Cluster
from quire.client.group_offsets import OffsetAndMetadata, Offsets, committed_offsets
from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.protocol.errors import ApiError
from quire.steps import Steps


class GroupPartition(NamedTuple):
    """A partition that a group has committed an offset for, or that one of its members reads."""

    topic_partition: TopicPartition
    committed: OffsetAndMetadata | None
    end_offset: int | None  # None if the partition has no leader now, or no longer exists
    member: Member | None
    first_offset: int | None = None  # looked up only where no offset is committed

    @property
    def record_count(self) -> int | None:
        """How many records the partition holds, if its first offset was looked up."""
        if self.first_offset is None or self.end_offset is None:
            return None
        return self.end_offset - self.first_offset

    @property
    def lag(self) -> int | None:
        """How many records are not read yet; negative if the partition was truncated below the committed offset."""
        if self.committed is None or self.end_offset is None:
            return None
        return self.end_offset - self.committed.offset


class Uncommitted(NamedTuple):
    """A reader that never commits has no lag: how many partitions it reads, and how many records they hold."""

    partitions: int
    records: int


class GroupDetail(NamedTuple):
    group: Group
    partitions: list[GroupPartition]

    @property
    def lag(self) -> int:
        """The sum over all partitions whose lag is known; a negative lag counts as 0."""
        return sum(max(0, found.lag or 0) for found in self.partitions)

    @property
    def uncommitted(self) -> "Uncommitted":
        """The partitions that a member reads without a committed offset, whose lag is not known."""
        without = [found for found in self.partitions if found.committed is None]
        return Uncommitted(len(without), sum(found.record_count or 0 for found in without))


def group_details(cluster: Cluster, group_ids: Iterable[str]) -> Steps[dict[str, GroupDetail | ApiError]]:
    """Each group with its partitions, sorted, or its error; the groups are in the order of `group_ids`."""
    described = yield from describe_groups(cluster, group_ids)
    known = {name: group for name, group in described.items() if isinstance(group, Group)}
    offsets = yield from committed_offsets(cluster, known)
    readers = {name: _readers(group) for name, group in known.items()}
    committed = {
        topic_partition: None
        for found in offsets.values()
        if not isinstance(found, ApiError)
        for topic_partition in found
    }
    read = {topic_partition: None for reading in readers.values() for topic_partition in reading}
    ends = yield from end_offsets(cluster, sorted({**committed, **read}))
    uncommitted = {
        topic_partition: EARLIEST
        for name, reading in readers.items()
        for topic_partition in reading
        if topic_partition in ends and topic_partition not in _committed(offsets[name])
    }
    starts = yield from list_offsets(cluster, uncommitted)
    firsts = {topic_partition: at.offset for topic_partition, at in starts.items()}
    details: dict[str, GroupDetail | ApiError] = {}
    for name, group in described.items():
        if isinstance(group, ApiError):
            details[name] = group
            continue
        held = offsets[name]
        details[name] = (
            held if isinstance(held, ApiError) else GroupDetail(group, _partitions(held, readers[name], ends, firsts))
        )
    return details


def end_offsets(cluster: Cluster, topic_partitions: Sequence[TopicPartition]) -> Steps[dict[TopicPartition, int]]:
    """The end offsets of those partitions that exist and have a leader."""
    yield from cluster.refresh(sorted({topic_partition.topic for topic_partition in topic_partitions}))
    led = [
        topic_partition for topic_partition in topic_partitions if cluster.metadata.leader(*topic_partition) is not None
    ]
    found = yield from list_offsets(cluster, dict.fromkeys(led, LATEST))
    return {topic_partition: at.offset for topic_partition, at in found.items()}


def _committed(found: Offsets | ApiError) -> Offsets:
    return {} if isinstance(found, ApiError) else found


def _readers(group: Group) -> dict[TopicPartition, Member]:
    return {topic_partition: member for member in group.members for topic_partition in member.assignment}


def _partitions(
    committed: Offsets,
    readers: Mapping[TopicPartition, Member],
    ends: Mapping[TopicPartition, int],
    firsts: Mapping[TopicPartition, int],
) -> list[GroupPartition]:
    return [
        GroupPartition(
            topic_partition,
            committed.get(topic_partition),
            ends.get(topic_partition),
            readers.get(topic_partition),
            None if topic_partition in committed else firsts.get(topic_partition),
        )
        for topic_partition in sorted({**committed, **readers})
    ]
