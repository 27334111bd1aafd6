"""What a partition tells the node that hosts it. `quire.node.partitions.PartitionEvents` implements it."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quire.replication.leader_role import LeaderRole
    from quire.replication.partition import Partition


class PartitionOwner(Protocol):
    def high_watermark_advanced(self, leader: "LeaderRole") -> None:
        """Fetches wait in the partition: `leader.wake_waiting_fetches` must be called soon, not within this call."""

    def flush_wanted(self, leader: "LeaderRole") -> None:
        """The log must be flushed in the background; then `leader.flushed` or `leader.flush_failed` must be called.

        The leader makes no second call before it has the result of the first.
        """

    def storage_failed(self, partition: "Partition", error: OSError) -> None:
        """The disk of the partition's log returned an error. The partition may be taken offline within this call."""
