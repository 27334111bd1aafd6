"""SyncGroup: the leader hands in the assignment, everybody gets theirs.

What is handed in is written down first. One assignment per generation: if the leader comes again while the first is on
its way, because it heard nothing, it waits for that with the others.
"""

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.group_record import group_record
from quire.coordinators.group.classic.member import Member, SyncAnswer
from quire.coordinators.group.classic.outcome import Outcome, give
from quire.coordinators.group.classic.rounds import Rounds
from quire.coordinators.group.classic.state import ClassicState
from quire.coordinators.runtime.machine import Caller
from quire.coordinators.runtime.result import Result
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_REQUIRED_VERSION = 5


class Syncs:
    __slots__ = ("_rounds",)

    def __init__(self, rounds: Rounds) -> None:
        self._rounds = rounds

    def sync(
        self, group: ClassicGroup, request: SyncGroupRequest, caller: Caller, now_ms: int
    ) -> Result[SyncGroupResponse]:
        member = group.check_member(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
        _check_protocol(group, request, caller)
        if group.state is ClassicState.PREPARING_REBALANCE:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, "the group rebalances again: join again")
        self._has_asked(group, member)
        if group.state is ClassicState.STABLE:
            self._rounds.sessions.heard_of(member)
            return Result(_response(group, member))
        assert group.state is ClassicState.COMPLETING_REBALANCE, f"{group!r} has members"
        return self._wait(group, member, request, now_ms)

    def _has_asked(self, group: ClassicGroup, member: Member) -> None:
        group.unsynced_members.pop(member.member_id, None)
        if not group.unsynced_members:
            self._rounds.end_syncing(group)

    def _wait(
        self, group: ClassicGroup, member: Member, request: SyncGroupRequest, now_ms: int
    ) -> Result[SyncGroupResponse]:
        outcome = Outcome()
        displaced = group.take_sync(member)
        outcome.answer(displaced, ApiError(ErrorCode.REBALANCE_IN_PROGRESS, "this member has asked again"))
        answer: SyncAnswer = Pending()
        member.awaiting_sync = answer
        if member.member_id == group.leader_id and group.assigned_generation != group.generation:
            generation = group.generation
            assignments = {assigned.member_id: assigned.assignment for assigned in request.assignments}
            outcome.write(
                group_record(group, assignments), lambda error: self._written(group, generation, now_ms, error)
            )
        return outcome.result(answer)

    def _written(self, group: ClassicGroup, generation: int, now_ms: int, error: ErrorCode) -> None:
        if group.state is not ClassicState.COMPLETING_REBALANCE or group.generation != generation:
            return  # The next round has begun meanwhile, and has called back who waited.
        if error is ErrorCode.NONE:
            group.move_to(ClassicState.STABLE, now_ms)
            give([(waiting, _response(group, member)) for member, waiting in self._waiting(group)])
        elif error is ErrorCode.MESSAGE_TOO_LARGE:
            self._refuse(group, now_ms)
        # Otherwise nobody knows what is in the log: all who wait are refused when the shard is unloaded.

    def _refuse(self, group: ClassicGroup, now_ms: int) -> None:
        """As Kafka does: a final error, for the same would happen again and again, and whoever is left gathers anew."""
        too_large = ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "the group's subscriptions and assignments do not fit into one record: use fewer members or topics",
        )
        outcome = Outcome()
        for _, waiting in self._waiting(group):
            outcome.answer(waiting, too_large)
        self._rounds.begin(group, now_ms, outcome)
        outcome.give()

    def _waiting(self, group: ClassicGroup) -> list[tuple[Member, SyncAnswer]]:
        """They need not wait any more, and are expected to be heard of again."""
        waiting: list[tuple[Member, SyncAnswer]] = []
        for member in group.members.values():
            answer = group.take_sync(member)
            if answer is not None:
                self._rounds.sessions.heard_of(member)
                waiting.append((member, answer))
        return waiting


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
