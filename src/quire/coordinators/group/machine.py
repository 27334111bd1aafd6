"""The group coordinator's state machine: one partition of `__consumer_offsets`.

It only directs: a request to the groups of the protocol it belongs to, a record to the part whose state it is. One id
is one group, so what crosses protocols is decided here.
"""

from collections.abc import Sequence

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.classic_groups import ClassicGroups
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.manager import ConsumerGroups
from quire.coordinators.group.group import Groups
from quire.coordinators.group.listing import list_groups
from quire.coordinators.group.offsets.offsets import Offsets
from quire.coordinators.runtime.machine import Caller, Surroundings
from quire.coordinators.runtime.record import Origin, RecordTypes, StateRecord
from quire.coordinators.runtime.result import Result
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages import consumer_group_describe
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from quire.protocol.messages.describe_groups import DescribedGroup
from quire.protocol.messages.group_records import (
    KEY_TYPES,
    VALUE_TYPES,
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from quire.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from quire.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from quire.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from quire.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from quire.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from quire.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from quire.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

_RECORD_TYPES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 16)
"""Those of share groups and streams groups are skipped: there are no such groups here."""

GROUP_ID_NOT_FOUND_SINCE = 6
"""Before, DescribeGroups could say only that a group is dead."""
_DEAD = "Dead"


class GroupMachine:
    record_types = RecordTypes(
        {number: KEY_TYPES[number] for number in _RECORD_TYPES},
        {number: VALUE_TYPES[number] for number in _RECORD_TYPES},
    )

    __slots__ = ("_classic", "_consumer", "_groups", "_offsets")

    def __init__(self, surroundings: Surroundings) -> None:
        self._groups = Groups()
        self._classic = ClassicGroups(self._groups, surroundings)
        self._consumer = ConsumerGroups(self._groups, surroundings)
        self._offsets = Offsets(self._groups, surroundings, self._classic.offsets_only)

    # Members of classic groups, and of consumer groups that were classic ones

    def join_group(self, request: JoinGroupRequest, caller: Caller, now_ms: int) -> Result[JoinGroupResponse]:
        """A consumer group whose members have all gone gives way to the classic one that begins."""
        group = self._groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            return self._classic.join(request, caller, now_ms)
        if not group.is_empty:
            return self._consumer.classic_members.join(group, request, caller, now_ms)
        del self._groups[request.group_id]
        try:
            result = self._classic.join(request, caller, now_ms)
        except ApiError:
            self._groups[request.group_id] = group
            raise
        result.records = [*group.tombstones(), *result.records]
        return result

    def sync_group(self, request: SyncGroupRequest, caller: Caller, now_ms: int) -> Result[SyncGroupResponse]:
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self._consumer.classic_members.sync(group, request, caller, now_ms)
        return self._classic.sync(request, caller, now_ms)

    def heartbeat(self, request: HeartbeatRequest, caller: Caller, now_ms: int) -> Result[HeartbeatResponse]:
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self._consumer.classic_members.heartbeat(group, request, caller, now_ms)
        return self._classic.heartbeat(request, caller, now_ms)

    def leave_group(self, request: LeaveGroupRequest, caller: Caller, now_ms: int) -> Result[LeaveGroupResponse]:
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self._consumer.classic_members.leave(group, request, caller, now_ms)
        return self._classic.leave(request, caller, now_ms)

    # Members of consumer groups

    def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int
    ) -> Result[ConsumerGroupHeartbeatResponse]:
        return self._consumer.heartbeat(request, caller, now_ms)

    # Offsets

    def offset_commit(self, request: OffsetCommitRequest, caller: Caller, now_ms: int) -> Result[OffsetCommitResponse]:
        return self._offsets.commit(request, caller, now_ms)

    def txn_offset_commit(
        self, request: TxnOffsetCommitRequest, caller: Caller, now_ms: int
    ) -> Result[TxnOffsetCommitResponse]:
        return self._offsets.commit_in_transaction(request, caller, now_ms)

    def is_in_transaction(self, producer_id: int) -> bool:
        """Whether the producer has committed offsets that count when its transaction, which is open, is committed."""
        return self._offsets.is_in_transaction(producer_id)

    def offset_fetch_group(
        self, request: OffsetFetchRequestGroup, require_stable: bool, caller: Caller, now_ms: int
    ) -> Result[OffsetFetchResponseGroup]:
        """One group of a request, in the form that newer versions have; `caller` tells whether topics have ids."""
        return self._offsets.fetch(request, caller, require_stable=require_stable)

    def offset_delete(self, request: OffsetDeleteRequest, caller: Caller, now_ms: int) -> Result[OffsetDeleteResponse]:
        return self._offsets.delete(request)

    # Administration

    def list_groups(self, request: ListGroupsRequest, now_ms: int) -> Result[list[ListedGroup]]:
        return Result(list_groups(self._groups, request.states_filter, request.types_filter))

    def describe_group(self, group_id: str, caller: Caller, now_ms: int) -> Result[DescribedGroup]:
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return Result(self._classic.describe(group))
        unknown = DescribedGroup(group_id=group_id, group_state=_DEAD)
        if caller.api_version >= GROUP_ID_NOT_FOUND_SINCE:
            unknown.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            unknown.error_message = _not_found(group_id, "classic group").message
        return Result(unknown)

    def describe_consumer_group(
        self, group_id: str, caller: Caller, now_ms: int
    ) -> Result[consumer_group_describe.DescribedGroup]:
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return Result(self._consumer.describe(group))
        raise _not_found(group_id, "consumer group")

    def delete_group(self, group_id: str, now_ms: int) -> Result[bool]:
        """False as long as not everything is deleted: it has to be asked again, until there is nothing left.

        Offsets go first, so that until then there is a group that can be deleted.
        """
        group = self._groups.get(group_id)
        if group is None:
            raise _not_found(group_id)
        group.check_delete()
        step = self._offsets.deletion(group_id)
        if step.is_full:
            return Result(False, step.records)
        return Result(True, step.records + group.tombstones())

    # The runtime

    def replay(self, record: StateRecord, origin: Origin) -> None:
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey | LegacyOffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue | LegacyOffsetCommitValue)
            self._offsets.replay(key, value, origin)
        elif isinstance(key, GroupMetadataKey):
            assert value is None or isinstance(value, GroupMetadataValue)
            self._classic.replay(key, value)
        else:
            self._consumer.replay(record)

    def replay_end(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        self._offsets.replay_end(producer_id, committed=committed)

    def loaded(self, now_ms: int) -> None:
        self._offsets.loaded()
        self._classic.loaded(now_ms)
        self._consumer.loaded(now_ms)

    def unloaded(self, reason: ErrorCode) -> None:
        self._classic.unloaded(reason)
        self._consumer.unloaded(reason)

    def metadata_changed(self, topics: Sequence[str], now_ms: int) -> None:
        self._offsets.metadata_changed(topics)
        self._consumer.metadata_changed(now_ms)


def _not_found(group_id: str, what: str = "group") -> ApiError:
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no {what} {group_id}")
