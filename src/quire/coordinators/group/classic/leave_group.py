"""LeaveGroup: one member, or several by member id or group.instance.id (since version 3)."""

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.rebalance import Rebalance
from quire.coordinators.group.classic.state import ClassicState
from quire.coordinators.runtime.machine import Caller
from quire.coordinators.runtime.result import CoordinatorResult
from quire.coordinators.runtime.result_builder import ResultBuilder
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse

BATCHED_VERSION = 3


class LeaveGroup:
    __slots__ = ("_rebalance",)

    def __init__(self, rebalance: Rebalance) -> None:
        self._rebalance = rebalance

    def leave(
        self, group: ClassicGroup | None, request: LeaveGroupRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[LeaveGroupResponse]:
        """`group` is None if it does not exist: then it has no members."""
        builder = ResultBuilder()
        leaving = request.members
        if caller.api_version < BATCHED_VERSION:
            leaving = [MemberIdentity(member_id=request.member_id)]
        errors = [self._leave_one(group, identity, builder) for identity in leaving]
        if group is not None and ErrorCode.NONE in errors and group.state is not ClassicState.EMPTY:
            self._rebalance.prepare_or_complete_join(group, now_ms, builder)
        if caller.api_version < BATCHED_VERSION:
            return builder.result(LeaveGroupResponse(error_code=errors[0]))
        return builder.result(LeaveGroupResponse(members=[_left(*each) for each in zip(leaving, errors, strict=True)]))

    def _leave_one(self, group: ClassicGroup | None, identity: MemberIdentity, builder: ResultBuilder) -> ErrorCode:
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if identity.member_id in group.pending_members:
            self._rebalance.remove_pending_member(group, identity.member_id)
            return ErrorCode.NONE
        member_id = identity.member_id
        if not member_id and identity.group_instance_id is not None:
            # An administrator knows the instance but not its current member id.
            member_id = group.static_members.get(identity.group_instance_id, "")
        try:
            member = group.check_member(member_id, identity.group_instance_id)
        except ApiError as error:
            return error.code
        self._rebalance.remove_member(group, member, builder)
        return ErrorCode.NONE


def _left(identity: MemberIdentity, error: ErrorCode) -> MemberResponse:
    return MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)
