"""The classic groups of a shard: requests, records and the life cycle of the shard."""

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.group_record import (
    apply_assignments,
    is_member_id_update,
    matches_current_generation,
    restore,
)
from quire.coordinators.group.classic.join_group import MEMBERS_LIMIT, JoinGroup
from quire.coordinators.group.classic.leave_group import LeaveGroup
from quire.coordinators.group.classic.rebalance import Rebalance
from quire.coordinators.group.classic.state import HEARTBEAT_ERRORS, ClassicState
from quire.coordinators.group.classic.sync_group import SyncGroup
from quire.coordinators.group.group import Groups
from quire.coordinators.runtime.machine import Caller, MachineEnvironment
from quire.coordinators.runtime.result import CoordinatorResult
from quire.coordinators.runtime.result_builder import ResultBuilder, complete_all
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from quire.protocol.messages.group_records import GroupMetadataKey, GroupMetadataValue
from quire.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from quire.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class ClassicGroups:
    """Serves requests for groups that are classic or do not exist. `groups` has those of the other protocol, too."""

    __slots__ = (
        "_config",
        "_groups",
        "_is_loaded",
        "_join_group",
        "_leave_group",
        "_rebalance",
        "_sessions",
        "_sync_group",
    )

    def __init__(self, groups: Groups, environment: MachineEnvironment) -> None:
        self._groups = groups
        self._config = environment.config
        self._rebalance = Rebalance(environment.config, environment.timers)
        self._sessions = self._rebalance.sessions
        self._join_group = JoinGroup(environment, self._rebalance)
        self._sync_group = SyncGroup(self._rebalance)
        self._leave_group = LeaveGroup(self._rebalance)
        self._is_loaded = False

    # --- Requests

    def join(self, request: JoinGroupRequest, caller: Caller, now_ms: int) -> CoordinatorResult[JoinGroupResponse]:
        _check_group_id(request.group_id)
        group = self._group(request.group_id)
        if group is None:
            self._check_session_timeout(request.session_timeout_ms)
            if request.member_id:
                raise _unknown_member(request.group_id)
            group = self.new_group(request.group_id)
        result = self.join_group(group, request, caller, now_ms)
        self._groups[request.group_id] = group
        return result

    def join_group(
        self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[JoinGroupResponse]:
        """The group need not be registered yet."""
        self._check_session_timeout(request.session_timeout_ms)
        return self._join_group.join(group, request, caller, now_ms)

    def sync(self, request: SyncGroupRequest, caller: Caller, now_ms: int) -> CoordinatorResult[SyncGroupResponse]:
        return self._sync_group.sync(self._group_with_members(request.group_id), request, caller, now_ms)

    def heartbeat(self, request: HeartbeatRequest, caller: Caller, now_ms: int) -> CoordinatorResult[HeartbeatResponse]:
        group = self._group_with_members(request.group_id)
        member = group.check_member(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
        self._sessions.renew_session(member)
        return CoordinatorResult(HeartbeatResponse(error_code=HEARTBEAT_ERRORS[group.state]))

    def leave(self, request: LeaveGroupRequest, caller: Caller, now_ms: int) -> CoordinatorResult[LeaveGroupResponse]:
        _check_group_id(request.group_id)
        return self.leave_group(self._group(request.group_id), request, caller, now_ms)

    def leave_group(
        self, group: ClassicGroup | None, request: LeaveGroupRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[LeaveGroupResponse]:
        """The group need not be registered yet."""
        return self._leave_group.leave(group, request, caller, now_ms)

    def describe(self, group: ClassicGroup) -> DescribedGroup:
        """The metadata of members is shown only while the group is stable, as in Kafka."""
        protocol = group.protocol_name if group.state is ClassicState.STABLE else None
        return DescribedGroup(
            group_id=group.group_id,
            group_state=group.state_name,
            protocol_type=group.protocol_type,
            protocol_data=protocol or "",
            members=[
                DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=b"" if protocol is None else member.protocols[protocol],
                    member_assignment=member.assignment,
                )
                for member in group.members.values()
            ],
        )

    # --- Groups without members

    def new_group(self, group_id: str) -> ClassicGroup:
        """The caller registers it."""
        return ClassicGroup(group_id, self._sessions.renew_session)

    def offsets_only(self, group_id: str) -> ClassicGroup:
        """The group of consumers that only commit offsets. It has no members and no record."""
        group = self._group(group_id)
        if group is None:
            group = self._groups[group_id] = self.new_group(group_id)
        return group

    # --- Records

    def replay(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        group = self._groups.get(key.group)
        known = group if isinstance(group, ClassicGroup) else None
        if value is None:
            if known is not None:
                self._forget(known)
        elif known is not None and self._is_loaded and is_member_id_update(known, value):
            known.written = value
        elif known is not None and self._is_loaded and matches_current_generation(known, value):
            apply_assignments(known, value)
        else:
            self._restore(known or self.new_group(key.group), value)

    def loaded(self, now_ms: int) -> None:
        self._is_loaded = True
        limit = min(self._config.get_int("group.max.size"), MEMBERS_LIMIT)
        for group in self._groups.values():
            if isinstance(group, ClassicGroup):
                self._start_sessions(group)
                if len(group.members) > limit or group.is_leaderless:
                    self._rebalance.prepare(group, now_ms, ResultBuilder())

    def unloaded(self, reason: ErrorCode) -> None:
        for group in self._groups.values():
            if isinstance(group, ClassicGroup):
                complete_all([(waiting, None) for waiting in group.take_all_waiting()], reason)
        complete_all([(waiting, None) for waiting in self._rebalance.take_refused()], reason)

    # --- Helpers

    def _group(self, group_id: str) -> ClassicGroup | None:
        group = self._groups.get(group_id)
        if group is None or isinstance(group, ClassicGroup):
            return group
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"{group_id} is a {group.type.value} group")

    def _group_with_members(self, group_id: str) -> ClassicGroup:
        _check_group_id(group_id)
        group = self._group(group_id)
        if group is None or not group.members:
            raise _unknown_member(group_id)
        return group

    def _check_session_timeout(self, session_timeout_ms: int) -> None:
        shortest_ms = self._config.get_int("group.min.session.timeout.ms")
        longest_ms = self._config.get_int("group.max.session.timeout.ms")
        if not shortest_ms <= session_timeout_ms <= longest_ms:
            raise ApiError(
                ErrorCode.INVALID_SESSION_TIMEOUT,
                f"session.timeout.ms={session_timeout_ms} is not allowed: choose from {shortest_ms} to {longest_ms}",
            )

    def _restore(self, group: ClassicGroup, value: GroupMetadataValue) -> None:
        if self._is_loaded:
            self._forget(group)
        restore(group, value)
        self._groups[group.group_id] = group
        if self._is_loaded:
            self._start_sessions(group)
            if group.is_leaderless:
                self._rebalance.prepare_soon(group)

    def _start_sessions(self, group: ClassicGroup) -> None:
        for member in group.members.values():
            self._sessions.start(group, member)

    def _forget(self, group: ClassicGroup) -> None:
        """The group was deleted, or became a consumer group that has its members."""
        self._rebalance.stop(group)
        self._rebalance.refuse_waiting(group)
        group.pending_members.clear()
        group.state = ClassicState.DEAD
        self._groups.pop(group.group_id, None)


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "group.id is empty: choose one")


def _unknown_member(group_id: str) -> ApiError:
    return ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"not a member of group {group_id}: join again")
