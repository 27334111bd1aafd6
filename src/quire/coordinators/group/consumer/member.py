"""Member of a consumer group: its subscription and its current assignment.

All classes here are immutable values. Subscription and assignment are two records in the log (`records`).
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from quire.coordinators.group.consumer.assignors import Assignment
from quire.protocol.messages.group_records import ClassicMemberMetadata

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
LEAVING_STATICALLY_EPOCH = -2
"""A static member that left and may rejoin, under another member id, until its session expires."""

Held = Mapping[bytes, Mapping[int, int]]
"""Partitions by topic id, each with the member epoch of its assignment. No topic is empty."""

NOTHING: Held = {}


class MemberState(IntEnum):
    """What a member waits for. The log has these numbers."""

    STABLE = 0
    """Nothing: it has its whole assignment."""
    UNREVOKED_PARTITIONS = 1
    """It must revoke partitions before it gets to the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """It is in the newest epoch, but other members still own some of its partitions."""
    UNKNOWN = 127
    """A newer coordinator wrote a state that this one does not know."""


class Subscription(NamedTuple):
    """What a member has sent about itself since it joined. `topic_names` are sorted."""

    client_id: str = ""
    client_host: str = ""
    topic_names: tuple[str, ...] = ()
    topic_regex: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    instance_id: str | None = None
    rack_id: str | None = None
    classic: ClassicMemberMetadata | None = None
    """Of a member that uses the classic protocol, during a migration."""


class CurrentAssignment(NamedTuple):
    """`revoking` has the partitions whose revocation the member has not confirmed yet."""

    member_epoch: int = JOINING_EPOCH
    previous_member_epoch: int = JOINING_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Held = NOTHING
    revoking: Held = NOTHING

    def in_epoch(
        self, member_epoch: int, state: MemberState, assigned: Held, revoking: Held = NOTHING
    ) -> "CurrentAssignment":
        return CurrentAssignment(member_epoch, self.member_epoch, state, assigned, revoking)

    def epoch_of(self, topic_id: bytes, partition: int) -> int | None:
        """The member epoch in which the partition was assigned; None if the member does not own it."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return epoch if epoch is not None else self.revoking.get(topic_id, {}).get(partition)

    def owns(self, partitions: Iterable[tuple[bytes, Iterable[int]]]) -> bool:
        """Whether the member has all of these, or has yet to revoke them."""
        return all(
            self.epoch_of(topic_id, number) is not None for topic_id, numbers in partitions for number in numbers
        )

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state == MemberState.STABLE and self.member_epoch == assignment_epoch


class Member(NamedTuple):
    member_id: str
    subscription: Subscription = Subscription()
    current: CurrentAssignment = CurrentAssignment()

    @property
    def instance_id(self) -> str | None:
        return self.subscription.instance_id

    @property
    def is_classic(self) -> bool:
        return self.subscription.classic is not None


def to_assignment(held: Held) -> Assignment:
    return {topic_id: frozenset(partitions) for topic_id, partitions in held.items()}
