"""SyncGroup: the leader sends the assignment, and each member gets its part.

The assignment is committed first. A generation has one: if the leader repeats its request while the first assignment is
being written, it waits for that one together with the other members.
"""

from functools import partial

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.group_record import group_record
from quire.coordinators.group.classic.member import Member, PendingSyncResponse
from quire.coordinators.group.classic.rebalance import Rebalance
from quire.coordinators.group.classic.state import ClassicState
from quire.coordinators.runtime.machine import Caller
from quire.coordinators.runtime.result import CoordinatorResult
from quire.coordinators.runtime.result_builder import ResultBuilder, complete_all
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_REQUIRED_VERSION = 5


class SyncGroup:
    __slots__ = ("_rebalance",)

    def __init__(self, rebalance: Rebalance) -> None:
        self._rebalance = rebalance

    def sync(
        self, group: ClassicGroup, request: SyncGroupRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[SyncGroupResponse]:
        member = group.check_member(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
        if group.state is ClassicState.PREPARING_REBALANCE or group.is_leaderless:
            # Before the protocol is checked: if the group was downgraded in this generation, each member had its own
            # until then. A member that is told that its protocol is wrong gives up.
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, "the group rebalances again: join again")
        _check_protocol(group, request, caller)
        self._synced(group, member)
        if group.state is ClassicState.STABLE:
            self._rebalance.sessions.renew_session(member)
            return CoordinatorResult(_response(group, member))
        assert group.state is ClassicState.COMPLETING_REBALANCE, f"{group!r} has members"
        return self._wait(group, member, request, now_ms)

    def _synced(self, group: ClassicGroup, member: Member) -> None:
        group.pending_sync_members.pop(member.member_id, None)
        if not group.pending_sync_members:
            self._rebalance.end_sync_phase(group)

    def _wait(
        self, group: ClassicGroup, member: Member, request: SyncGroupRequest, now_ms: int
    ) -> CoordinatorResult[SyncGroupResponse]:
        builder = ResultBuilder()
        displaced = group.take_sync(member)
        builder.respond(displaced, ApiError(ErrorCode.REBALANCE_IN_PROGRESS, "this member has sent SyncGroup again"))
        response: PendingSyncResponse = Pending()
        member.awaiting_sync = response
        if member.member_id == group.leader_id and group.assigned_generation != group.generation:
            assignments = {assigned.member_id: assigned.assignment for assigned in request.assignments}
            on_written = partial(self._assignment_written, group, group.generation, now_ms)
            builder.write_only(group_record(group, assignments), on_written)
        return builder.result(response)

    def _assignment_written(self, group: ClassicGroup, generation: int, now_ms: int, error: ErrorCode) -> None:
        if group.state is not ClassicState.COMPLETING_REBALANCE or group.generation != generation:
            return  # The next rebalance has started, and has answered the waiting members.
        if error is ErrorCode.NONE:
            group.move_to(ClassicState.STABLE, now_ms)
            complete_all([(waiting, _response(group, member)) for member, waiting in self._take_waiting(group)])
        elif error is ErrorCode.MESSAGE_TOO_LARGE:
            self._refuse(group, now_ms)
        # After any other error the shard is unloaded, which refuses all waiting requests.

    def _refuse(self, group: ClassicGroup, now_ms: int) -> None:
        """As in Kafka, a fatal error, because a retry would fail in the same way. The other members rebalance."""
        too_large = ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "the group's subscriptions and assignments do not fit into one record: use fewer members or topics",
        )
        builder = ResultBuilder()
        for _, waiting in self._take_waiting(group):
            builder.respond(waiting, too_large)
        self._rebalance.prepare(group, now_ms, builder)
        builder.respond_now()

    def _take_waiting(self, group: ClassicGroup) -> list[tuple[Member, PendingSyncResponse]]:
        """Members that no longer wait must send heartbeats again. The caller must complete their requests."""
        taken: list[tuple[Member, PendingSyncResponse]] = []
        for member in group.members.values():
            waiting = group.take_sync(member)
            if waiting is not None:
                self._rebalance.sessions.renew_session(member)
                taken.append((member, waiting))
        return taken


def _check_protocol(group: ClassicGroup, request: SyncGroupRequest, caller: Caller) -> None:
    given = (request.protocol_type, request.protocol_name)
    if caller.api_version >= PROTOCOL_REQUIRED_VERSION and None in given:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "SyncGroup names the protocol from version 5 on")
    for name, actual in zip(given, (group.protocol_type, group.protocol_name), strict=True):
        if name is not None and name != actual:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the group has agreed on {actual}, not on {name}")


def _response(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )
