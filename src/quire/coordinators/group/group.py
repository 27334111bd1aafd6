"""A group of either protocol, as offset commits, listing, deletion and expiration see it."""

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
        """`consumer` for consumers of either protocol; empty for a group that only has offsets."""
        ...

    @property
    def state_name(self) -> str:
        """As Kafka spells it in ListGroups and DescribeGroups."""
        ...

    @property
    def is_empty(self) -> bool:
        """The group has no members, so its offsets may expire and be deleted."""
        ...

    def check_offset_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, is_transactional: bool, api_version: int
    ) -> CheckPartition | None:
        """ApiError unless this member may commit offsets now. `generation` is the member epoch in a consumer group.

        The caller must call the returned function for each partition: a member of a consumer group that does not know
        its current epoch yet may commit offsets of partitions that it has owned since an older one (KIP-1251). None if
        the member may commit all partitions.
        """
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """ApiError unless this member may read the offsets. A request without a member (None and -1) always may."""
        ...

    def check_delete(self) -> None:
        """ApiError unless the whole group may be deleted."""
        ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic, so that its offsets are in use. True if that is unknown."""
        ...

    def offsets_unused_since(self, commit_ms: int) -> int | None:
        """The start of the retention of an offset that was committed at `commit_ms`; None while it is in use."""
        ...

    def tombstones(self) -> list[StateRecord]:
        """The records that delete the group, without its offsets."""
        ...


class Groups(dict[str, Group]):
    """The groups of a shard by id, of both protocols. An id belongs to one group."""
