"""What a partition reports to the node that hosts it. `quire.node.partitions.PartitionEvents` implements it."""

from typing import TYPE_CHECKING, Protocol

from quire.protocol.errors import ApiError

if TYPE_CHECKING:
    from quire.replication.follower_role import FollowerRole
    from quire.replication.leader_role import LeaderRole
    from quire.replication.partition import Partition
    from quire.storage.scanning.batch_scan import DamagedBatchError


class PartitionOwner(Protocol):
    def role_changed(self, partition: "Partition") -> None:
        """The partition has another role, or none: it has to be copied from another leader, or no longer."""

    def high_watermark_advanced(self, partition: "Partition") -> None:
        """Fetches wait in the partition: `waiting_fetches.wake` must be called soon, not within this call."""

    def flush_wanted(self, role: "LeaderRole | FollowerRole") -> None:
        """The log must be flushed in the background; then `role.flushed` or `role.flush_failed` must be called.

        The role makes no second call before it has the result of the first.
        """

    def follower_flushed(self, follower: "FollowerRole") -> None:
        """The follower may fetch again, as far as `flush.messages` is concerned."""

    def isr_change_wanted(self, leader: "LeaderRole") -> None:
        """The controller must be asked for `leader.isr_change`; `leader.isr_answered` or `isr_refused` must follow."""

    def may_join_isr(self, replica_id: int, broker_epoch: int) -> bool:
        """Whether the broker is up, and registered with this epoch, as far as this node knows (KIP-903)."""

    def storage_failed(self, partition: "Partition", error: OSError) -> None:
        """The disk of the partition's log returned an error. The partition may be taken offline within this call."""

    def damage_found(self, partition: "Partition", damage: "DamagedBatchError") -> ApiError:
        """A batch of the log is damaged. The result is for the client: whether the replica will be repaired."""
        ...
