"""A member of a group, in either protocol, as `GroupConsumer` uses it.

`ConsumerMember` speaks the newer protocol (KIP-848) and `ClassicMember` the classic one. A coordinator converts a
classic group when a member of the newer protocol joins it, which other members may report as an error. So a member
joins an existing group with the protocol of the group.
"""

from typing import Protocol

from quire.client.group_offsets import Committer
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ErrorCode
from quire.steps import Steps

FENCED = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION)


class FencedError(Exception):
    """The coordinator has given this member's partitions to others. The member may join again, without partitions."""


class GroupMember(Protocol):
    @property
    def interval_ms(self) -> float:
        """The time between two exchanges."""

    @property
    def committer(self) -> Committer | None:
        """Who commits its offsets; None if it is not a member."""

    def exchange(self) -> Steps[list[TopicPartition] | None]:
        """Joins or reports to the coordinator. Returns the new assignment, or None if it has not changed.

        Raises `FencedError`, or the error of the response.
        """

    def reads(self) -> None:
        """The member reads exactly the partitions of the last assignment now; the next exchange may report that."""

    def leave(self) -> Steps[None]:
        """Tells the coordinator, so that other members continue at once."""
