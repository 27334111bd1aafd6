"""A member of a consumer group: what it says about itself, and how far it has come.

Values: a change makes a new one. The two halves are two records in the log, `records` knows them.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from quire.coordinators.group.consumer.assignors import Assignment
from quire.protocol.messages.group_records import ClassicMemberMetadata

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
LEAVING_STATICALLY_EPOCH = -2
"""A static member that has left and may come back, under another member id, until its session ends."""

Held = Mapping[bytes, Mapping[int, int]]
"""Partitions by topic id, each with the member epoch since which the member has it. No topic without a partition."""

NOTHING: Held = {}


class MemberState(IntEnum):
    """What a member waits for; the numbers are those of the log."""

    STABLE = 0
    """Nothing: it has all it should have in its epoch."""
    UNREVOKED_PARTITIONS = 1
    """It has to give partitions up before it comes to the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """It is in the newest epoch, but others still have partitions that it should have."""
    UNKNOWN = 127
    """Written by a newer coordinator."""


class Subscription(NamedTuple):
    """What a member has said about itself, in pieces, since it joined. `topic_names` are sorted."""

    client_id: str = ""
    client_host: str = ""
    topic_names: tuple[str, ...] = ()
    topic_regex: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    instance_id: str | None = None
    rack_id: str | None = None
    classic: ClassicMemberMetadata | None = None
    """Of a member that speaks the classic protocol while its group is on the way from one protocol to the other."""


class CurrentAssignment(NamedTuple):
    """Where a member stands. `revoking` is what it has been told to give up, and has not confirmed yet."""

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
        """Since which of its epochs the member has the partition; None where it does not."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return epoch if epoch is not None else self.revoking.get(topic_id, {}).get(partition)

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


def holds_only(held: Held, partitions: Iterable[tuple[bytes, Iterable[int]]]) -> bool:
    """Whether all of `partitions`, by topic id, are among those held."""
    for topic_id, numbers in partitions:
        among = held.get(topic_id, {})
        if any(number not in among for number in numbers):
            return False
    return True


def to_assignment(held: Held) -> Assignment:
    return {topic_id: frozenset(partitions) for topic_id, partitions in held.items()}
