"""How the replicas of a partition change: what it begins with, when it is complete, and what a cancellation leaves.

    replicas 1 2 3, asked for 3 4        replicas 3 4 1 2, adding 4, removing 1 2
    4 is in the ISR                      replicas 3 4
    or the reassignment is cancelled     replicas 3 1 2

Until it is complete, the partition has the new replicas and the old ones. It is complete when all that were added are
in the ISR, and when the old ones are not needed any more: the others in the ISR are enough for min.insync.replicas, or
those that leave had nothing to give. (Apache Kafka asks for one member of the ISR that stays. Records that two replicas
have acknowledged would then be on one.) A cancellation, which removes those that were added, follows the same rule.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from quire.metadata.partition_image import PartitionImage


class Assignment(NamedTuple):
    """The replicas of a partition, and which of them come or go."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas when the reassignment is complete."""
        return _without(self.replicas, self.removing)

    @property
    def original(self) -> tuple[int, ...]:
        """The replicas if it is cancelled."""
        return _without(self.replicas, self.adding)


class Holders(NamedTuple):
    """Who has everything that was acknowledged, and how many of them there should be."""

    isr: tuple[int, ...]
    elr: tuple[int, ...]
    min_insync_replicas: int

    def may_lose(self, leaving: Collection[int], remaining: Sequence[int]) -> bool:
        """Whether acknowledged records are as safe as the topic asks for when only `remaining` are replicas."""
        if not any(each in leaving for each in (*self.isr, *self.elr)):
            return True
        left = _without(self.isr, leaving)
        return bool(left) and len(left) >= min(self.min_insync_replicas, len(remaining))


def assignment_of(partition: PartitionImage) -> Assignment:
    return Assignment(partition.replicas, partition.adding_replicas, partition.removing_replicas)


def towards(partition: PartitionImage, target: Sequence[int], holders: Holders) -> Assignment:
    """The way to other replicas. It replaces a reassignment that is in progress.

    What that one has added, and this one does not want, is dropped at once if it is not needed.
    """
    current = assignment_of(partition)
    adding = sorted(each for each in target if each not in current.original)
    dropped = [each for each in current.adding if each not in target]
    leaving = _without(current.original, target)
    if not holders.may_lose(dropped, _without(current.replicas, dropped)):
        leaving = (*leaving, *dropped)
    removing = sorted(leaving)
    return Assignment((*target, *removing), tuple(adding), tuple(removing))


def completed(assignment: Assignment, holders: Holders) -> Assignment | None:
    """What the partition has after the reassignment; None if there is none, or it is not complete."""
    if not assignment.adding and not assignment.removing:
        return None
    staying = _without(holders.isr, assignment.removing)
    if not staying or any(each not in staying for each in assignment.adding):
        return None
    if not holders.may_lose(assignment.removing, assignment.target):
        return None
    return Assignment(assignment.target)


def _without(replicas: Iterable[int], others: Collection[int]) -> tuple[int, ...]:
    return tuple(each for each in replicas if each not in others)
