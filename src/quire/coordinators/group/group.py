"""What a group is to those who need not know its protocol: the offsets it commits, listing, deleting, expiring."""

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from quire.coordinators.runtime.record import StateRecord


class GroupType(Enum):
    CLASSIC = "classic"
    CONSUMER = "consumer"


CheckPartition = Callable[[bytes, int], None]
"""(topic id, partition) -> None: ApiError unless a member may commit an offset of this partition."""


class Group(Protocol):
    @property
    def group_id(self) -> str: ...

    @property
    def type(self) -> GroupType: ...

    @property
    def protocol_type(self) -> str:
        """`consumer` for consumers of either protocol; empty for a group that only keeps offsets."""
        ...

    @property
    def state_name(self) -> str:
        """As Kafka spells it in ListGroups and DescribeGroups."""
        ...

    @property
    def is_empty(self) -> bool:
        """No members: its offsets may expire and be deleted."""
        ...

    def check_offset_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, is_transactional: bool, api_version: int
    ) -> CheckPartition | None:
        """ApiError unless this member may commit offsets now. `generation` is the member epoch in a consumer group.

        What comes back is asked about each partition: a member of a consumer group that has not heard of its newest
        epoch yet may still commit what it has owned since an older one (KIP-1251). None where there is nothing to ask.
        """
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """ApiError unless this member may read the group's offsets; without a member (None and -1) anybody may."""
        ...

    def check_delete(self) -> None:
        """ApiError unless the whole group may be deleted."""
        ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic, so that its offsets are in use. True where that cannot be told."""
        ...

    def offsets_unused_since(self, commit_ms: int) -> int | None:
        """From when on a commit of `commit_ms` is no longer in use, for its expiry; None while the group may use it."""
        ...

    def tombstones(self) -> list[StateRecord]:
        """What has to be written for the group to be gone, offsets aside."""
        ...


class Groups(dict[str, Group]):
    """All groups of one shard by id. One id is one group, of either protocol."""
