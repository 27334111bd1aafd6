"""A partition that this node leads, on a simulated disk; the test is its owner."""

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import Record, build_batch, iterate_records
from quire.replication.commit_wait import CommitWait
from quire.replication.follower_role import FollowerRole
from quire.replication.leader_role import LeaderRole
from quire.replication.members import Members
from quire.replication.partition import Partition
from quire.replication.partition_owner import PartitionOwner
from quire.replication.settings import PartitionSettings
from quire.storage import Log, LogConfig
from quire.storage.scanning.batch_scan import DamagedBatchError
from simulator.disk import SimDisk

NOW = 1_700_000_000_000


def records(*values: bytes, timestamp: int = NOW) -> list[Record]:
    return [Record(number, timestamp, None, value) for number, value in enumerate(values)]


def batch(*values: bytes, **settings: int) -> bytearray:
    return build_batch(records(*values), **settings)  # type: ignore[arg-type]


class Leader(PartitionOwner):
    """Collects wake-ups and flushes instead of scheduling them."""

    def __init__(
        self,
        settings: PartitionSettings | None = None,
        isr: tuple[int, ...] = (1,),
        log_config: LogConfig | None = None,
    ) -> None:
        self.disk = SimDisk()
        self.disk.make_dirs("/data/t-0")
        self.to_wake: list[Partition] = []
        self.to_flush: list[LeaderRole] = []
        self.failures: list[OSError] = []
        self.damages: list[DamagedBatchError] = []
        self.log = Log.open(self.disk, "/data/t-0", log_config or LogConfig(), clean=True, now_ms=NOW)
        self.partition = Partition("t", bytes(16), 0, 1, self.log, settings or PartitionSettings(), self)
        self.eligible = True
        """Whether followers may join the ISR."""
        self.isr_changes: list[LeaderRole] = []
        self.partition.become_leader(0, Members(isr, isr))

    def high_watermark_advanced(self, partition: Partition) -> None:
        self.to_wake.append(partition)

    def flush_wanted(self, role: LeaderRole | FollowerRole) -> None:
        assert isinstance(role, LeaderRole)
        self.to_flush.append(role)

    def role_changed(self, partition: Partition) -> None:
        pass

    def follower_flushed(self, follower: FollowerRole) -> None:
        pass

    def isr_change_wanted(self, leader: LeaderRole) -> None:
        self.isr_changes.append(leader)

    def may_join_isr(self, replica_id: int, broker_epoch: int) -> bool:
        return self.eligible

    def storage_failed(self, partition: Partition, error: OSError) -> None:
        assert partition is self.partition
        self.failures.append(error)

    def damage_found(self, partition: Partition, damage: DamagedBatchError) -> ApiError:
        self.damages.append(damage)
        return damage

    @property
    def role(self) -> LeaderRole:
        assert self.partition.leader is not None
        return self.partition.leader

    def append(self, *values: bytes, acks_all: bool = True, **settings: int) -> int:
        return self.role.append(batch(*values, **settings), acks_all, NOW).base_offset

    def read(self, offset: int, max_bytes: int = 1 << 20) -> list[bytes | None]:
        data = self.partition.read(offset, max_bytes, at_least_one_batch=True, committed_only=False)
        return [] if data is None else [record.value for record in iterate_records(data.read())]

    def wake(self) -> None:
        waking, self.to_wake[:] = list(self.to_wake), []
        for partition in waking:
            partition.waiting_fetches.wake()

    def wait_for(self, offset: int, *, acks_all: bool = True) -> list[dict[LeaderRole, ErrorCode]]:
        """The result of a write that waits for `offset`, as soon as there is one."""
        told: list[dict[LeaderRole, ErrorCode]] = []
        wait = CommitWait()
        wait.when_done(told.append)
        wait.wait_for(self.role, offset, acks_all=acks_all)
        return told
