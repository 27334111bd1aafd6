"""How far a group is behind: per partition what it has committed, where the partition ends, and who reads it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from quire.client.admin.group_descriptions import Group, Member
from quire.client.admin.groups import describe_groups
from quire.client.cluster import Cluster
from quire.client.group_offsets import OffsetAndMetadata, Offsets, committed_offsets
from quire.client.offsets import LATEST, TopicPartition, list_offsets
from quire.protocol.errors import ApiError
from quire.steps import Steps


class GroupPartition(NamedTuple):
    """A partition that a group has committed an offset for, or that one of its members reads."""

    place: TopicPartition
    committed: OffsetAndMetadata | None
    end_offset: int | None  # None where nobody leads the partition now, or there is no such partition any more
    member: Member | None

    @property
    def lag(self) -> int | None:
        """Records that are still to be read; below zero when the partition has become shorter than what was read."""
        if self.committed is None or self.end_offset is None:
            return None
        return self.end_offset - self.committed.offset


class GroupDetail(NamedTuple):
    group: Group
    partitions: list[GroupPartition]

    @property
    def lag(self) -> int:
        """In sum over what is known; a partition that has become shorter does not make up for the others."""
        return sum(max(0, found.lag or 0) for found in self.partitions)


def group_details(cluster: Cluster, group_ids: Iterable[str]) -> Steps[dict[str, GroupDetail | ApiError]]:
    """Each group with its partitions, in the order of topics and partitions, or why not; in the order asked for."""
    described = yield from describe_groups(cluster, group_ids)
    known = {name: group for name, group in described.items() if isinstance(group, Group)}
    offsets = yield from committed_offsets(cluster, known)
    readers = {name: _readers(group) for name, group in known.items()}
    committed = {place: None for found in offsets.values() if not isinstance(found, ApiError) for place in found}
    read = {place: None for reading in readers.values() for place in reading}
    ends = yield from end_offsets(cluster, sorted({**committed, **read}))
    details: dict[str, GroupDetail | ApiError] = {}
    for name, group in described.items():
        if isinstance(group, ApiError):
            details[name] = group
            continue
        held = offsets[name]
        details[name] = (
            held if isinstance(held, ApiError) else GroupDetail(group, _partitions(held, readers[name], ends))
        )
    return details


def end_offsets(cluster: Cluster, places: Sequence[TopicPartition]) -> Steps[dict[TopicPartition, int]]:
    """Where partitions end, of those that exist and are led."""
    yield from cluster.refresh(sorted({place.topic for place in places}))
    led = [place for place in places if cluster.metadata.leader(*place) is not None]
    found = yield from list_offsets(cluster, dict.fromkeys(led, LATEST))
    return {place: at.offset for place, at in found.items()}


def _readers(group: Group) -> dict[TopicPartition, Member]:
    return {place: member for member in group.members for place in member.assignment}


def _partitions(
    committed: Offsets, readers: Mapping[TopicPartition, Member], ends: Mapping[TopicPartition, int]
) -> list[GroupPartition]:
    return [
        GroupPartition(place, committed.get(place), ends.get(place), readers.get(place))
        for place in sorted({**committed, **readers})
    ]
