"""The in-sync replicas of one leadership: what the controller has committed, and what it has been asked for.

The leader proposes a change, and the controller decides (AlterPartition). Until the leader knows the decision, either
set may be the committed one: another leader may already have been elected from it. So the high watermark waits for the
members of both (KIP-497). A member is removed or added one change at a time.
"""

from typing import NamedTuple

from quire.replication.members import Members


class IsrChange(NamedTuple):
    """A change of the ISR that the leader proposes."""

    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    """Of the members, in the same order; -1 for those that have not fetched from this leader, and for itself."""
    leader_epoch: int
    partition_epoch: int


class InSyncReplicas:
    __slots__ = ("committed", "has_unanswered_request", "maximal", "partition_epoch", "proposed", "replicas")

    def __init__(self, members: Members) -> None:
        self.replicas = members.replicas
        self.committed = members.isr
        self.partition_epoch = members.partition_epoch
        self.proposed: tuple[int, ...] | None = None
        """What the controller was asked for, and has not answered."""
        self.has_unanswered_request = False
        """A request with `proposed` had no answer. It may reach the controller after a later one was answered."""
        self.maximal = members.isr
        """All that may be in sync: those of `committed` and of `proposed`."""

    def commit(self, members: Members) -> bool:
        """The controller's decision; False if it is older than what is known."""
        if members.partition_epoch < self.partition_epoch:
            return False
        if members.partition_epoch == self.partition_epoch and self.proposed is not None:
            # It says nothing new, and so nothing about the change that is under way.
            return False
        self.replicas = members.replicas
        self.committed = self.maximal = members.isr
        self.partition_epoch = members.partition_epoch
        self.proposed = None
        return True

    def propose(self, isr: tuple[int, ...]) -> None:
        assert self.proposed is None, "one change of the ISR at a time"
        self.proposed = isr
        self.has_unanswered_request = False
        self.maximal = tuple(dict.fromkeys(self.committed + isr))

    def withdraw(self) -> None:
        """It is certain that the change never takes effect."""
        self.proposed = None
        self.maximal = self.committed

    def required(self, min_insync_replicas: int) -> int:
        """How many replicas must be in sync for an acks=all write: never more than there are.

        Replicas that are being added count here, because the controller counts them when it decides who stays eligible.
        """
        return min(min_insync_replicas, len(self.replicas))
