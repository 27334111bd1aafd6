"""LeaveGroup: one member, or several at once by member id or group.instance.id (version 3 on)."""

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.outcome import Outcome
from quire.coordinators.group.classic.rounds import Rounds
from quire.coordinators.group.classic.state import ClassicState
from quire.coordinators.runtime.machine import Caller
from quire.coordinators.runtime.result import Result
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse

BATCHED_VERSION = 3


class Leaves:
    __slots__ = ("_rounds",)

    def __init__(self, rounds: Rounds) -> None:
        self._rounds = rounds

    def leave(
        self, group: ClassicGroup | None, request: LeaveGroupRequest, caller: Caller, now_ms: int
    ) -> Result[LeaveGroupResponse]:
        """Without a group nobody is a member of it."""
        outcome = Outcome()
        leaving = request.members
        if caller.api_version < BATCHED_VERSION:
            leaving = [MemberIdentity(member_id=request.member_id)]
        errors = [self._leave_one(group, identity, outcome) for identity in leaving]
        if group is not None and ErrorCode.NONE in errors and group.state is not ClassicState.EMPTY:
            self._rounds.begin_or_go_on(group, now_ms, outcome)
        if caller.api_version < BATCHED_VERSION:
            return outcome.result(LeaveGroupResponse(error_code=errors[0]))
        return outcome.result(LeaveGroupResponse(members=[_left(*each) for each in zip(leaving, errors, strict=True)]))

    def _leave_one(self, group: ClassicGroup | None, identity: MemberIdentity, outcome: Outcome) -> ErrorCode:
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if identity.member_id in group.pending_members:
            self._rounds.drop_pending(group, identity.member_id)
            return ErrorCode.NONE
        member_id = identity.member_id
        if not member_id and identity.group_instance_id is not None:
            # An administrator who knows the instance but not its present id.
            member_id = group.static_members.get(identity.group_instance_id, "")
        try:
            member = group.check_member(member_id, identity.group_instance_id)
        except ApiError as error:
            return error.code
        self._rounds.leave(group, member, outcome)
        return ErrorCode.NONE


def _left(identity: MemberIdentity, error: ErrorCode) -> MemberResponse:
    return MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)
