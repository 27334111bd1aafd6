"""The follower's side of a partition: whom it copies from, where it reads on, and where its log leaves the leader's."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.replication.partition import Partition


class FollowerRole:
    """One leader epoch on a replica that does not lead. `Partition.become_follower` makes it."""

    __slots__ = ("leader_epoch", "leader_id", "partition")

    def __init__(self, partition: "Partition", leader_id: int, leader_epoch: int) -> None:
        self.partition = partition
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch

    @property
    def fetch_position(self) -> tuple[int, int]:
        """The next offset to copy, and the epoch of the last batch in the log (-1 for none): a replica's fetch."""
        log = self.partition.log
        return log.end_offset, log.epochs.latest

    def truncation_offset(self, epoch: int, end_offset: int) -> int:
        """How much of this log to keep when the leader says that its `epoch` ends at `end_offset` (KIP-595).

        Both logs agree up to the smaller end of that epoch. If this log has only earlier epochs, the follower goes back
        to the end of the latest of these and asks again.
        """
        log = self.partition.log
        own_epoch, own_end_offset = log.epoch_end(epoch)
        if own_epoch == -1:
            own_end_offset = log.end_offset  # This log has no epochs, and so nothing to compare.
        kept = own_end_offset if -1 < own_epoch < epoch else min(own_end_offset, end_offset)
        return max(kept, log.start_offset)
