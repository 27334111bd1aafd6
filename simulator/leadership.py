"""Who leads a partition: what each node believes, and what the newest metadata says.

A leader that was deposed may not know it yet, and still answers with what was committed in its time. So an answer is
judged by the epoch in which its node led when the request was sent:

    the newest epoch, still when the answer arrives      `is_current`: everything that is known must be in it
    an earlier one, or none                              it may be older than what is known
    one before records were lost (`settled`)             it may be about records that are lost; it says nothing

On a node on its own nothing of this matters: its epochs are None.

The same holds for coordinators, which lead partitions of internal topics: one that was paused and deposed still answers
what it need not write, such as a JoinGroup.
"""

from quire.coordinators.runtime.partitioning import partition_for
from quire.protocol.internal_topics import GROUP_OFFSETS
from simulator.hosts import ALONE


class Leadership:
    __slots__ = ("_epochs", "cut_at", "leader", "newest", "settled")

    def __init__(self) -> None:
        self.newest = -1
        """The latest leader epoch in the metadata of any node."""
        self.leader: str | None = None
        """Who leads in it, if anyone does."""
        self.settled = -1
        """The epoch of the first leader after the last loss of records."""
        self.cut_at = 0
        """Where that leader's log left the one that was known."""
        self._epochs: dict[str, int] = {}

    def believes(self, node: str, epoch: int, leader: str | None) -> None:
        """The node has applied metadata with this leader."""
        self._epochs[node] = epoch if leader == node else -1
        if epoch >= self.newest:
            self.newest, self.leader = epoch, leader

    def forgets(self, node: str) -> None:
        """The node has ended."""
        self._epochs.pop(node, None)

    def epoch_of(self, node: str) -> int | None:
        """The epoch in which the node leads, as far as it knows; -1 if it does not."""
        return None if node == ALONE else self._epochs.get(node, -1)

    def is_current(self, epoch: int | None) -> bool:
        return epoch is None or epoch == self.newest

    def is_deposed(self, epoch: int | None) -> bool:
        """Whether a node with this epoch leads as far as it knows, but another epoch has begun."""
        return epoch is not None and 0 <= epoch < self.newest

    def is_before_loss(self, epoch: int | None) -> bool:
        """Whether a node with this epoch may still answer with records that are lost."""
        return epoch is not None and epoch < self.settled


class Coordinators:
    """The leaders of internal topics' partitions."""

    __slots__ = ("_partitions",)

    def __init__(self) -> None:
        self._partitions: dict[str, dict[int, Leadership]] = {}

    def partition(self, topic: str, index: int) -> Leadership:
        return self._partitions.setdefault(topic, {}).setdefault(index, Leadership())

    def of_group(self, name: str) -> Leadership:
        partitions = self._partitions.get(GROUP_OFFSETS)
        return Leadership() if partitions is None else partitions[partition_for(name, len(partitions))]

    def forgets(self, node: str) -> None:
        """The node has ended."""
        for partitions in self._partitions.values():
            for leadership in partitions.values():
                leadership.forgets(node)
