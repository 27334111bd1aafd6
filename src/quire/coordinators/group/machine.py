"""GroupMachine: the state machine of one partition of `__consumer_offsets`.

It passes each request to the groups of its protocol, and each record to the part that has the state. An id belongs to
one group, so conversions between protocols start here.
"""

from collections.abc import Sequence

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.classic_groups import ClassicGroups
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.consumer_groups import ConsumerGroups
from quire.coordinators.group.group import Groups
from quire.coordinators.group.listing import list_groups
from quire.coordinators.group.offsets.offsets import Offsets
from quire.coordinators.runtime.machine import Caller, MachineEnvironment
from quire.coordinators.runtime.record import Origin, RecordTypes, StateRecord
from quire.coordinators.runtime.result import CoordinatorResult
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
"""The loader skips records of share groups and streams groups, which Quire does not support."""

GROUP_ID_NOT_FOUND_SINCE = 6
"""Before this version, DescribeGroups reports an unknown group as Dead."""
_DEAD = "Dead"


class GroupMachine:
    record_types = RecordTypes(
        {number: KEY_TYPES[number] for number in _RECORD_TYPES},
        {number: VALUE_TYPES[number] for number in _RECORD_TYPES},
    )

    __slots__ = ("_classic", "_consumer", "_groups", "_offsets")

    def __init__(self, environment: MachineEnvironment) -> None:
        self._groups = Groups()
        self._classic = ClassicGroups(self._groups, environment)
        self._consumer = ConsumerGroups(self._groups, environment)
        self._offsets = Offsets(self._groups, environment, self._classic.offsets_only)

    # --- The classic protocol

    def join_group(
        self, request: JoinGroupRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[JoinGroupResponse]:
        group = self._groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            return self._classic.join(request, caller, now_ms)
        if not group.is_empty:
            return self._consumer.classic_members.join(group, request, caller, now_ms)
        return self._join_empty(group, request, caller, now_ms)

    def _join_empty(
        self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[JoinGroupResponse]:
        """A classic group replaces the empty consumer group when a member joins it.

        Not before: a client that is only given a member id may never return, and the group would have changed its type
        for nothing. Until then the successor keeps these ids.
        """
        successor = group.classic_successor or self._classic.new_group(group.group_id)
        result = self._classic.join_group(successor, request, caller, now_ms)
        if successor.members:
            self._groups[group.group_id] = successor
            result.records = [*group.tombstones(), *result.records]
        else:
            group.classic_successor = successor
        return result

    def sync_group(
        self, request: SyncGroupRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[SyncGroupResponse]:
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self._consumer.classic_members.sync(group, request, caller, now_ms)
        return self._classic.sync(request, caller, now_ms)

    def heartbeat(self, request: HeartbeatRequest, caller: Caller, now_ms: int) -> CoordinatorResult[HeartbeatResponse]:
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self._consumer.classic_members.heartbeat(group, request, caller, now_ms)
        return self._classic.heartbeat(request, caller, now_ms)

    def leave_group(
        self, request: LeaveGroupRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[LeaveGroupResponse]:
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            if group.is_empty and group.classic_successor is not None:
                return self._classic.leave_group(group.classic_successor, request, caller, now_ms)
            return self._consumer.classic_members.leave(group, request, caller, now_ms)
        return self._classic.leave(request, caller, now_ms)

    # --- The consumer protocol

    def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[ConsumerGroupHeartbeatResponse]:
        return self._consumer.heartbeat(request, caller, now_ms)

    # --- Offsets

    def offset_commit(
        self, request: OffsetCommitRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[OffsetCommitResponse]:
        return self._offsets.commit(request, caller, now_ms)

    def txn_offset_commit(
        self, request: TxnOffsetCommitRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[TxnOffsetCommitResponse]:
        return self._offsets.commit_in_transaction(request, caller, now_ms)

    def is_in_transaction(self, producer_id: int) -> bool:
        """Whether the producer has committed offsets in an open transaction."""
        return self._offsets.is_in_transaction(producer_id)

    def offset_fetch_group(
        self, request: OffsetFetchRequestGroup, require_stable: bool, caller: Caller, now_ms: int
    ) -> CoordinatorResult[OffsetFetchResponseGroup]:
        """One group of a request, in the form of newer versions. `caller` has the version, which may use topic ids."""
        return self._offsets.fetch(request, caller, require_stable=require_stable)

    def offset_delete(
        self, request: OffsetDeleteRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[OffsetDeleteResponse]:
        return self._offsets.delete(request)

    # --- Administration

    def list_groups(self, request: ListGroupsRequest, now_ms: int) -> CoordinatorResult[list[ListedGroup]]:
        return CoordinatorResult(list_groups(self._groups, request.states_filter, request.types_filter))

    def describe_group(self, group_id: str, caller: Caller, now_ms: int) -> CoordinatorResult[DescribedGroup]:
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return CoordinatorResult(self._classic.describe(group))
        unknown = DescribedGroup(group_id=group_id, group_state=_DEAD)
        if caller.api_version >= GROUP_ID_NOT_FOUND_SINCE:
            unknown.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            unknown.error_message = _not_found(group_id, "classic group").message
        return CoordinatorResult(unknown)

    def describe_consumer_group(
        self, group_id: str, caller: Caller, now_ms: int
    ) -> CoordinatorResult[consumer_group_describe.DescribedGroup]:
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return CoordinatorResult(self._consumer.describe(group))
        raise _not_found(group_id, "consumer group")

    def delete_group(self, group_id: str, now_ms: int) -> CoordinatorResult[bool]:
        """Deletes a part of a large group and returns False. The caller must repeat it until it returns True.

        The offsets are deleted first, so that the group exists until the last step.
        """
        group = self._groups.get(group_id)
        if group is None:
            raise _not_found(group_id)
        group.check_delete()
        step = self._offsets.deletion(group_id)
        if step.is_full:
            return CoordinatorResult(False, step.records)
        return CoordinatorResult(True, step.records + group.tombstones())

    # --- State machine

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
