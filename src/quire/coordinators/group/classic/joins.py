"""JoinGroup: getting into a group, coming back, and changing one's mind.

A dynamic member joins twice from version 4 on: first without an id, for which it is given one (MEMBER_ID_REQUIRED),
then with it. So a client that gave up in between leaves an id behind that is soon forgotten, not a member that all
others wait for. A static member is known by its group.instance.id: it may come back without an id within its session
timeout, gets a new one, and finds its assignment as it was; whoever still uses the old id is fenced.
"""

from typing import NamedTuple

from quire.coordinators.group.classic.classic_group import ClassicGroup, fenced
from quire.coordinators.group.classic.group_record import group_record, renamed_record
from quire.coordinators.group.classic.join_response import join_response, rejoined_response
from quire.coordinators.group.classic.member import JoinAnswer, Member, Protocols
from quire.coordinators.group.classic.member_id import new_member_id
from quire.coordinators.group.classic.outcome import Outcome, give
from quire.coordinators.group.classic.rounds import Rounds
from quire.coordinators.group.classic.state import ClassicState
from quire.coordinators.runtime.machine import Caller, Surroundings
from quire.coordinators.runtime.result import Result
from quire.coordinators.runtime.unsent import encoded
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

MEMBER_ID_REQUIRED_VERSION = 4

MEMBERS_LIMIT = 10_000
"""Of one group, whatever `group.max.size` says: its record would hardly fit into a batch."""

PENDING_LIMIT = 10_000
"""Of ids given out in one group and not used yet. The oldest goes first; who comes with it later is given another."""

SIZE_LIMIT_RECORDS = 8
"""What the members of one group told may have the size of so many of its records: one has but the protocol in use of
those that members support, and may be no larger than what the log takes."""


class _Attempt(NamedTuple):
    """One JoinGroup request on its way."""

    request: JoinGroupRequest
    caller: Caller
    protocols: Protocols
    now_ms: int
    outcome: Outcome

    @property
    def rebalance_timeout_ms(self) -> int:
        """Version 0 has none."""
        timeout_ms = self.request.rebalance_timeout_ms
        return timeout_ms if timeout_ms >= 0 else self.request.session_timeout_ms

    def member(self, member_id: str, assignment: bytes = b"") -> Member:
        return Member(
            member_id,
            instance_id=self.request.group_instance_id,
            client_id=self.caller.client_id,
            client_host=self.caller.client_host,
            session_timeout_ms=self.request.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            protocols=self.protocols,
            assignment=assignment,
        )


class Joins:
    __slots__ = ("_config", "_max_batch_bytes", "_random", "_rounds", "_sessions")

    def __init__(self, surroundings: Surroundings, rounds: Rounds) -> None:
        self._config = surroundings.config
        self._max_batch_bytes = surroundings.max_batch_bytes
        self._random = surroundings.random
        self._rounds = rounds
        self._sessions = rounds.sessions

    def join(
        self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller, now_ms: int
    ) -> Result[JoinGroupResponse]:
        attempt = _Attempt(request, caller, _protocols(request), now_ms, Outcome())
        former_id = ""
        if not request.member_id and request.group_instance_id is not None:
            former_id = group.static_members.get(request.group_instance_id, "")
        if not self._has_room(group, request.member_id or former_id):
            return self._turn_away(group, attempt)
        if not group.supports(request.protocol_type, attempt.protocols):
            raise ApiError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"group {group.group_id} has other members, who do not support these protocols: offer one of theirs",
            )
        self._check_size(group, request.member_id or former_id, attempt)
        if former_id:
            return self._come_back(group, group.members[former_id], attempt)
        if not request.member_id:
            return self._join_without_id(group, attempt)
        if request.member_id in group.pending_members and request.group_instance_id is None:
            return self._enter(group, request.member_id, attempt)
        member = group.check_member(request.member_id, request.group_instance_id)
        return self._join_again(group, member, attempt)

    # How many there may be

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """A round lets in who comes first, up to the limit: so a group that is too large, because the limit was
        lowered, loses those who come last."""
        limit = min(self._config.get_int("group.max.size"), MEMBERS_LIMIT)
        if group.is_empty:
            return True
        if group.state is ClassicState.PREPARING_REBALANCE:
            member = group.members.get(member_id)
            return group.waiting_joins < limit or (member is not None and member.awaiting_join is not None)
        return member_id in group.members or len(group.members) < limit

    def _turn_away(self, group: ClassicGroup, attempt: _Attempt) -> Result[JoinGroupResponse]:
        member = group.members.get(attempt.request.member_id)
        if member is not None:
            self._rounds.leave(group, member, attempt.outcome)
        elif attempt.request.member_id in group.pending_members:
            self._rounds.drop_pending(group, attempt.request.member_id)
        self._rounds.complete_if_everybody_joined(group, attempt.now_ms, attempt.outcome)
        return attempt.outcome.result(JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))

    def _check_size(self, group: ClassicGroup, member_id: str, attempt: _Attempt) -> None:
        """What could never be written down is not kept until SyncGroup, when that would be found out."""
        before = group.members.get(member_id)
        size = group.size_bytes + attempt.member(member_id).size_bytes - (0 if before is None else before.size_bytes)
        limit = SIZE_LIMIT_RECORDS * self._max_batch_bytes()
        if size > limit:
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"the subscriptions of group {group.group_id} would have {size} bytes, and {limit} are kept: "
                "use fewer members, topics or assignors",
            )

    # Getting in

    def _join_without_id(self, group: ClassicGroup, attempt: _Attempt) -> Result[JoinGroupResponse]:
        instance_id = attempt.request.group_instance_id
        member_id = self._new_id(attempt)
        if instance_id is not None or attempt.caller.api_version < MEMBER_ID_REQUIRED_VERSION:
            return self._enter(group, member_id, attempt)
        if len(group.pending_members) >= PENDING_LIMIT:
            self._rounds.drop_pending(group, next(iter(group.pending_members)))
        group.pending_members[member_id] = None
        self._sessions.expect(group, member_id, attempt.request.session_timeout_ms)
        return Result(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id))

    def _new_id(self, attempt: _Attempt) -> str:
        known_as = attempt.request.group_instance_id
        return new_member_id(attempt.caller.client_id if known_as is None else known_as, self._random)

    def _enter(self, group: ClassicGroup, member_id: str, attempt: _Attempt) -> Result[JoinGroupResponse]:
        member = attempt.member(member_id)
        member.is_new = True
        answer = member.awaiting_join = Pending()
        if not attempt.request.member_id and not member.is_static:
            answer.on_abandoned = lambda: self._forget(group, member, answer)
        group.add(member, attempt.request.protocol_type)
        group.joined_since = True
        self._sessions.start(group, member)
        self._rounds.begin_or_go_on(group, attempt.now_ms, attempt.outcome)
        self._write_new_id(group, member, attempt)
        return attempt.outcome.result(answer)

    def _forget(self, group: ClassicGroup, member: Member, answer: JoinAnswer) -> None:
        """Its client went away before it was told its id: nobody can come back under it."""
        if member.awaiting_join is answer and group.members.get(member.member_id) is member:
            self._sessions.give_up(member)

    # Joining again

    def _join_again(self, group: ClassicGroup, member: Member, attempt: _Attempt) -> Result[JoinGroupResponse]:
        """The leader may ask for a round although it wants the same: it has seen topics change."""
        is_leader = member.member_id == group.leader_id
        has_changed = not member.wants_the_same(attempt.protocols)
        calls_for_a_round = has_changed or group.is_leaderless or (is_leader and group.state is ClassicState.STABLE)
        if group.state is not ClassicState.PREPARING_REBALANCE and not calls_for_a_round:
            # It did not hear the first time that the round is over.
            self._sessions.heard_of(member)
            return Result(join_response(group, member))
        group.update_protocols(member, attempt.protocols)
        member.session_timeout_ms = attempt.request.session_timeout_ms
        member.rebalance_timeout_ms = attempt.rebalance_timeout_ms
        answer: JoinAnswer = Pending()
        displaced = group.wait_in_join(member, answer)
        attempt.outcome.answer(displaced, ApiError(ErrorCode.REBALANCE_IN_PROGRESS, "this member has joined again"))
        self._rounds.begin_or_go_on(group, attempt.now_ms, attempt.outcome)
        return attempt.outcome.result(answer)

    def _come_back(self, group: ClassicGroup, former: Member, attempt: _Attempt) -> Result[JoinGroupResponse]:
        for waiting in (group.take_join(former), group.take_sync(former)):
            attempt.outcome.answer(waiting, fenced(former.instance_id))
        former_leader_id = group.leader_id
        member = attempt.member(self._new_id(attempt), former.assignment)
        self._replace(group, former, member)
        answer: JoinAnswer = Pending()
        group.wait_in_join(member, answer)
        if group.state is not ClassicState.STABLE or group.preferred_protocol() != group.protocol_name:
            self._rounds.begin_or_go_on(group, attempt.now_ms, attempt.outcome)
            self._write_new_id(group, member, attempt)
            return attempt.outcome.result(answer)

        def written(error: ErrorCode) -> None:
            if member.awaiting_join is not answer:
                return
            if error is ErrorCode.MESSAGE_TOO_LARGE:
                group.take_join(member)
                self._replace(group, member, former)
            elif error is ErrorCode.NONE and group.state is ClassicState.STABLE:
                group.take_join(member)
                self._sessions.heard_of(member)
                give([(answer, rejoined_response(group, member, former_leader_id, attempt.caller.api_version))])
            # If a round has begun meanwhile, it has joined that.

        attempt.outcome.write(group_record(group), written)
        return attempt.outcome.result(answer)

    def _replace(self, group: ClassicGroup, old: Member, new: Member) -> None:
        self._sessions.end(group, old.member_id)
        group.replace(old, new)
        self._sessions.start(group, new)

    def _write_new_id(self, group: ClassicGroup, member: Member, attempt: _Attempt) -> None:
        """A round is written down at its end, but who is told its id, or that it is fenced, hears of it before that. If
        the log were replayed then, the former member would be let in again, and this one be fenced: for good, say
        clients. A record that the log no longer takes, because its limit was lowered, must not keep the round from
        going on: the next one may be smaller."""
        record = renamed_record(group, member)
        if record is not None and encoded([record], attempt.now_ms)[1] <= self._max_batch_bytes():
            attempt.outcome.write(record)


def _protocols(request: JoinGroupRequest) -> Protocols:
    protocols: Protocols = {}
    for protocol in request.protocols:
        protocols.setdefault(protocol.name, protocol.metadata)
    return protocols
