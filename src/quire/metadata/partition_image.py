"""One partition as the metadata log has it. A value: a change makes a new one."""

from typing import NamedTuple

from quire.protocol import uuids
from quire.protocol.messages.metadata_records import PartitionChangeRecord, PartitionRecord

NO_LEADER = -1
NO_LEADER_CHANGE = -2

RECOVERED, RECOVERING = 0, 1
"""States of a leader: a recovering one was elected unclean, and its ISR has not changed since."""

UNASSIGNED_DIRECTORY = uuids.ZERO
"""The directory of a replica whose broker has not reported it yet."""
LOST_DIRECTORY = bytes(15) + b"\x01"
"""The directory of a replica that its broker does not have any more."""
MIGRATING_DIRECTORY = bytes(15) + b"\x02"
"""What Kafka calls the directory of a replica from before directories had ids."""


class PartitionImage(NamedTuple):
    """The replicas of a partition, its leader, and the replicas that may become the leader.

    `leader_epoch` counts leaders, `partition_epoch` every change. `elr` are replicas outside the ISR that hold all
    that was acknowledged (KIP-966).
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    directories: tuple[bytes, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def is_reassigning(self) -> bool:
        """Whether replicas are being added or removed."""
        return bool(self.adding_replicas or self.removing_replicas)

    def reassigned(
        self, replicas: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...]
    ) -> "PartitionImage":
        """With other replicas. Its directories are still those of the present ones."""
        return self._replace(replicas=replicas, adding_replicas=adding, removing_replicas=removing)

    @classmethod
    def from_record(cls, record: PartitionRecord) -> "PartitionImage":
        return cls(
            replicas=tuple(record.replicas),
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            directories=tuple(record.directories) or (MIGRATING_DIRECTORY,) * len(record.replicas),
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            leader_recovery_state=record.leader_recovery_state,
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
        )

    def to_record(self, topic_id: bytes, partition: int, version: int) -> PartitionRecord:
        """The record that creates this partition, without the fields that `version` lacks."""
        return PartitionRecord(
            partition_id=partition,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories) if version >= 1 else [],
            eligible_leader_replicas=list(self.elr) if version >= 2 and self.elr else None,
            last_known_elr=list(self.last_known_elr) if version >= 2 and self.last_known_elr else None,
        )

    def changed_by(self, record: PartitionChangeRecord) -> "PartitionImage":
        """Every change is a new partition epoch; naming a leader, even the same one, is a new leader epoch."""
        replicas = _either(record.replicas, self.replicas)
        elects = record.leader != NO_LEADER_CHANGE
        recovery = record.leader_recovery_state
        return PartitionImage(
            replicas=replicas,
            isr=_either(record.isr, self.isr),
            leader=record.leader if elects else self.leader,
            leader_epoch=self.leader_epoch + 1 if elects else self.leader_epoch,
            partition_epoch=self.partition_epoch + 1,
            directories=self._directories_for(record, replicas),
            removing_replicas=_either(record.removing_replicas, self.removing_replicas),
            adding_replicas=_either(record.adding_replicas, self.adding_replicas),
            leader_recovery_state=self.leader_recovery_state if recovery < 0 else recovery,
            elr=_either(record.eligible_leader_replicas, self.elr),
            last_known_elr=_either(record.last_known_elr, self.last_known_elr),
        )

    def without_elr(self) -> "PartitionImage":
        return self._replace(elr=(), last_known_elr=())

    def _directories_for(self, record: PartitionChangeRecord, replicas: tuple[int, ...]) -> tuple[bytes, ...]:
        if record.directories is not None:
            return tuple(record.directories)
        if record.replicas is None:
            return self.directories
        known = dict(zip(self.replicas, self.directories, strict=True))
        return tuple(known.get(replica, UNASSIGNED_DIRECTORY) for replica in replicas)


def _either(changed: list[int] | None, current: tuple[int, ...]) -> tuple[int, ...]:
    return current if changed is None else tuple(changed)
