"""What happens in partitions and concerns the node: fetches to wake, logs to flush, disks that fail.

Waking and flushing wait for the next turn of the event loop, so that all requests of this turn share them.
"""

import logging
from typing import TYPE_CHECKING

from quire.node.partitions.hosted import HostedPartitions
from quire.protocol.errors import ApiError
from quire.replication.follower_role import FollowerRole
from quire.replication.leader_role import LeaderRole
from quire.replication.partition import Partition
from quire.replication.partition_owner import PartitionOwner
from quire.seams import Clock
from quire.storage.scanning.batch_scan import DamagedBatchError

if TYPE_CHECKING:
    from quire.node.replicas import Replicas

log = logging.getLogger("quire.partitions")


class PartitionEvents(PartitionOwner):
    __slots__ = ("_clock", "_hosted", "_replicas", "_to_flush", "_to_wake")

    def __init__(self, hosted: HostedPartitions, replicas: "Replicas", clock: Clock) -> None:
        self._hosted = hosted
        self._replicas = replicas
        self._clock = clock
        self._to_wake: dict[Partition, None] = {}
        self._to_flush: dict[LeaderRole | FollowerRole, None] = {}

    def high_watermark_advanced(self, partition: Partition) -> None:
        if not self._to_wake:
            self._clock.call_soon(self._wake)
        self._to_wake[partition] = None

    def _wake(self) -> None:
        waking, self._to_wake = self._to_wake, {}
        for partition in waking:
            try:
                partition.waiting_fetches.wake()
            except Exception:
                # The fetches that wait in other partitions must still be woken.
                log.exception("waking the fetches that wait for %s failed", partition)

    def flush_wanted(self, role: LeaderRole | FollowerRole) -> None:
        if not self._to_flush:
            self._clock.call_soon(self._flush)
        self._to_flush[role] = None

    def _flush(self) -> None:
        flushing, self._to_flush = self._to_flush, {}
        for role in flushing:
            # The partition may have been deleted, or the node may be stopping.
            directory = self._hosted.directory_of.get(role.partition)
            if directory is not None and not role.log.closed:
                directory.flush(role.log, role.flushed, role.flush_failed)

    def role_changed(self, partition: Partition) -> None:
        self._replicas.role_changed(partition)

    def follower_flushed(self, follower: FollowerRole) -> None:
        self._replicas.flushed(follower)

    def isr_change_wanted(self, leader: LeaderRole) -> None:
        self._replicas.isr_changes.wanted(leader)

    def may_join_isr(self, replica_id: int, broker_epoch: int) -> bool:
        return self._replicas.may_join_isr(replica_id, broker_epoch)

    def damage_found(self, partition: Partition, damage: DamagedBatchError) -> ApiError:
        return self._replicas.repairs.damage_found(partition, damage)

    def storage_failed(self, partition: Partition, error: OSError) -> None:
        self._hosted.directory_of[partition].fail(error)
