"""A state machine of classic groups alone, for a `SimShard`."""

from collections.abc import Sequence
from typing import Any

from quire.coordinators.group.classic.classic_groups import ClassicGroups
from quire.coordinators.group.group import Groups
from quire.coordinators.runtime.machine import Caller, MachineEnvironment
from quire.coordinators.runtime.record import Origin, RecordTypes, StateRecord
from quire.coordinators.runtime.result import CoordinatorResult
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.group_records import GroupMetadataKey, GroupMetadataValue
from quire.protocol.messages.heartbeat import HeartbeatRequest
from quire.protocol.messages.join_group import JoinGroupRequest
from quire.protocol.messages.leave_group import LeaveGroupRequest
from quire.protocol.messages.sync_group import SyncGroupRequest
from tests.coordinators.sim_shard import SimShard

Request = JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest


class ClassicMachine:
    record_types = RecordTypes({2: GroupMetadataKey}, {2: GroupMetadataValue})

    def __init__(self, environment: MachineEnvironment) -> None:
        self.groups = Groups()
        self.classic = ClassicGroups(self.groups, environment)

    def handle(self, request: Request, caller: Caller, now_ms: int) -> CoordinatorResult[Any]:
        match request:
            case JoinGroupRequest():
                return self.classic.join(request, caller, now_ms)
            case SyncGroupRequest():
                return self.classic.sync(request, caller, now_ms)
            case HeartbeatRequest():
                return self.classic.heartbeat(request, caller, now_ms)
            case LeaveGroupRequest():
                return self.classic.leave(request, caller, now_ms)

    def replay(self, record: StateRecord, origin: Origin) -> None:
        assert isinstance(record.key, GroupMetadataKey)
        assert record.value is None or isinstance(record.value, GroupMetadataValue)
        self.classic.replay(record.key, record.value)

    def replay_end(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        raise AssertionError("no group is written in a transaction")

    def loaded(self, now_ms: int) -> None:
        self.classic.loaded(now_ms)

    def unloaded(self, reason: ErrorCode) -> None:
        self.classic.unloaded(reason)

    def metadata_changed(self, topics: Sequence[str], now_ms: int) -> None:
        pass


ClassicShard = SimShard[ClassicMachine]


def classic_shard(settings: dict[str, str] | None = None, *, seed: int | str = 0) -> ClassicShard:
    return SimShard(ClassicMachine, settings, seed=seed)
