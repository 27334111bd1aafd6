"""JoinGroup: a member joins, joins again in a rebalance, or rejoins after a restart.

Since version 4 a dynamic member joins twice: first without an id, to which the coordinator answers with a new id and
MEMBER_ID_REQUIRED, then with that id. So a client that gives up in between leaves an id that soon expires, instead of a
member that all others wait for. A static member is identified by its group.instance.id. It may rejoin without a member
id within its session timeout; then it gets a new id and keeps its assignment, and the old id is fenced.
"""

from functools import partial
from typing import NamedTuple

from quire.coordinators.group.classic.classic_group import ClassicGroup, fenced
from quire.coordinators.group.classic.group_record import group_record, record_with_new_member_id
from quire.coordinators.group.classic.join_response import join_response, rejoined_response
from quire.coordinators.group.classic.member import Member, PendingJoinResponse, Protocols
from quire.coordinators.group.classic.member_id import new_member_id
from quire.coordinators.group.classic.rebalance import Rebalance
from quire.coordinators.group.classic.state import ClassicState
from quire.coordinators.runtime.machine import Caller, MachineEnvironment
from quire.coordinators.runtime.result import CoordinatorResult
from quire.coordinators.runtime.result_builder import ResultBuilder, complete_all
from quire.coordinators.runtime.unsent import encoded
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

MEMBER_ID_REQUIRED_VERSION = 4

MEMBERS_LIMIT = 10_000
"""Of one group, even if `group.max.size` is higher: the record of a larger group would hardly fit into a batch."""

PENDING_LIMIT = 10_000
"""Of member ids of one group that no member uses yet. The oldest is dropped first; its client gets another id."""

SIZE_LIMIT_RECORDS = 8
"""Limits what the members of one group send, in units of the largest record. A record has only the protocol in use,
while members may support several."""


class _Attempt(NamedTuple):
    """One JoinGroup request, with what its steps share."""

    request: JoinGroupRequest
    caller: Caller
    protocols: Protocols
    now_ms: int
    builder: ResultBuilder

    @property
    def rebalance_timeout_ms(self) -> int:
        """Version 0 has no rebalance timeout."""
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


class JoinGroup:
    __slots__ = ("_config", "_max_batch_bytes", "_random", "_rebalance", "_sessions")

    def __init__(self, environment: MachineEnvironment, rebalance: Rebalance) -> None:
        self._config = environment.config
        self._max_batch_bytes = environment.max_batch_bytes
        self._random = environment.random
        self._rebalance = rebalance
        self._sessions = rebalance.sessions

    def join(
        self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller, now_ms: int
    ) -> CoordinatorResult[JoinGroupResponse]:
        attempt = _Attempt(request, caller, _protocols(request), now_ms, ResultBuilder())
        former_id = ""
        if not request.member_id and request.group_instance_id is not None:
            former_id = group.static_members.get(request.group_instance_id, "")
        if not self._has_room(group, request.member_id or former_id):
            return self._refuse_full(group, attempt)
        if not group.supports(request.protocol_type, attempt.protocols):
            raise ApiError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"the other members of group {group.group_id} do not support these protocols: use one of theirs",
            )
        self._check_size(group, request.member_id or former_id, attempt)
        if former_id:
            return self._rejoin_static(group, group.members[former_id], attempt)
        if not request.member_id:
            return self._join_without_id(group, attempt)
        if request.member_id in group.pending_members and request.group_instance_id is None:
            return self._add_member(group, request.member_id, attempt)
        member = group.check_member(request.member_id, request.group_instance_id)
        return self._rejoin(group, member, attempt)

    # --- Limits

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """The join phase takes the first members up to the limit.

        So a group that became too large, because the limit was lowered, loses the members that join last.
        """
        limit = min(self._config.get_int("group.max.size"), MEMBERS_LIMIT)
        if group.is_empty:
            return True
        if group.state is ClassicState.PREPARING_REBALANCE:
            member = group.members.get(member_id)
            return group.awaiting_join_count < limit or (member is not None and member.awaiting_join is not None)
        return member_id in group.members or len(group.members) < limit

    def _refuse_full(self, group: ClassicGroup, attempt: _Attempt) -> CoordinatorResult[JoinGroupResponse]:
        member = group.members.get(attempt.request.member_id)
        if member is not None:
            self._rebalance.remove_member(group, member, attempt.builder)
        elif attempt.request.member_id in group.pending_members:
            self._rebalance.remove_pending_member(group, attempt.request.member_id)
        self._rebalance.maybe_complete_join(group, attempt.now_ms, attempt.builder)
        return attempt.builder.result(JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))

    def _check_size(self, group: ClassicGroup, member_id: str, attempt: _Attempt) -> None:
        """Refuses early what the log would refuse at the end of the rebalance."""
        before = group.members.get(member_id)
        size = group.size_bytes + attempt.member(member_id).size_bytes - (0 if before is None else before.size_bytes)
        limit = SIZE_LIMIT_RECORDS * self._max_batch_bytes()
        if size > limit:
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"the subscriptions of group {group.group_id} would have {size} bytes, and {limit} are kept: "
                "use fewer members, topics or assignors",
            )

    # --- New members

    def _join_without_id(self, group: ClassicGroup, attempt: _Attempt) -> CoordinatorResult[JoinGroupResponse]:
        instance_id = attempt.request.group_instance_id
        member_id = self._new_id(attempt)
        if instance_id is not None or attempt.caller.api_version < MEMBER_ID_REQUIRED_VERSION:
            return self._add_member(group, member_id, attempt)
        if len(group.pending_members) >= PENDING_LIMIT:
            self._rebalance.remove_pending_member(group, next(iter(group.pending_members)))
        group.pending_members[member_id] = None
        self._sessions.start_pending(group, member_id, attempt.request.session_timeout_ms)
        return CoordinatorResult(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id))

    def _new_id(self, attempt: _Attempt) -> str:
        known_as = attempt.request.group_instance_id
        return new_member_id(attempt.caller.client_id if known_as is None else known_as, self._random)

    def _add_member(
        self, group: ClassicGroup, member_id: str, attempt: _Attempt
    ) -> CoordinatorResult[JoinGroupResponse]:
        member = attempt.member(member_id)
        member.is_new = True
        response = member.awaiting_join = Pending()
        if not attempt.request.member_id and not member.is_static:
            response.on_abandoned = partial(self._client_disconnected, group, member, response)
        group.add(member, attempt.request.protocol_type)
        group.new_member_added = True
        self._sessions.start(group, member)
        self._rebalance.prepare_or_complete_join(group, attempt.now_ms, attempt.builder)
        self._write_new_id(group, member, attempt)
        return attempt.builder.result(response)

    def _client_disconnected(self, group: ClassicGroup, member: Member, response: PendingJoinResponse) -> None:
        """The client never learned its member id, so it cannot join under it again."""
        if member.awaiting_join is response and group.members.get(member.member_id) is member:
            self._sessions.expire_now(member)

    # --- Known members

    def _rejoin(self, group: ClassicGroup, member: Member, attempt: _Attempt) -> CoordinatorResult[JoinGroupResponse]:
        """A leader that joins again with the same protocols starts a rebalance, too: it has seen topics change."""
        is_leader = member.member_id == group.leader_id
        has_changed = not member.has_same_protocols(attempt.protocols)
        needs_rebalance = has_changed or group.is_leaderless or (is_leader and group.state is ClassicState.STABLE)
        if group.state is not ClassicState.PREPARING_REBALANCE and not needs_rebalance:
            # The response to its first request was lost.
            self._sessions.renew_session(member)
            return CoordinatorResult(join_response(group, member))
        group.update_protocols(member, attempt.protocols)
        member.session_timeout_ms = attempt.request.session_timeout_ms
        member.rebalance_timeout_ms = attempt.rebalance_timeout_ms
        response: PendingJoinResponse = Pending()
        displaced = group.await_join(member, response)
        attempt.builder.respond(displaced, ApiError(ErrorCode.REBALANCE_IN_PROGRESS, "this member has joined again"))
        self._rebalance.prepare_or_complete_join(group, attempt.now_ms, attempt.builder)
        return attempt.builder.result(response)

    def _rejoin_static(
        self, group: ClassicGroup, former: Member, attempt: _Attempt
    ) -> CoordinatorResult[JoinGroupResponse]:
        for waiting in (group.take_join(former), group.take_sync(former)):
            attempt.builder.respond(waiting, fenced(former.instance_id))
        former_leader_id = group.leader_id
        member = attempt.member(self._new_id(attempt), former.assignment)
        self._replace(group, former, member)
        response: PendingJoinResponse = Pending()
        group.await_join(member, response)
        if group.state is not ClassicState.STABLE or group.preferred_protocol() != group.protocol_name:
            self._rebalance.prepare_or_complete_join(group, attempt.now_ms, attempt.builder)
            self._write_new_id(group, member, attempt)
            return attempt.builder.result(response)

        on_written = partial(self._new_member_id_written, group, former, member, response, former_leader_id, attempt)
        attempt.builder.write_only(group_record(group), on_written)
        return attempt.builder.result(response)

    def _new_member_id_written(
        self,
        group: ClassicGroup,
        former: Member,
        member: Member,
        response: PendingJoinResponse,
        former_leader_id: str | None,
        attempt: _Attempt,
        error: ErrorCode,
    ) -> None:
        if member.awaiting_join is not response:
            return
        if error is ErrorCode.MESSAGE_TOO_LARGE:
            group.take_join(member)
            self._replace(group, member, former)
        elif error is ErrorCode.NONE and group.state is ClassicState.STABLE:
            group.take_join(member)
            self._sessions.renew_session(member)
            joined = rejoined_response(group, member, former_leader_id, attempt.caller.api_version)
            complete_all([(response, joined)])
        # If a rebalance has started meanwhile, the member has joined that one.

    def _replace(self, group: ClassicGroup, old: Member, new: Member) -> None:
        self._sessions.end(group, old.member_id)
        group.replace(old, new)
        self._sessions.start(group, new)

    def _write_new_id(self, group: ClassicGroup, member: Member, attempt: _Attempt) -> None:
        """Writes a static member's new id before the end of the rebalance.

        Clients learn the new id, or that theirs is fenced, before the group's record is written. If the coordinator
        failed in between, the replay would restore the old id and fence the new one, which is a fatal error to clients.
        A record that the log does not take, because its limit was lowered, must not stop the rebalance: the record of
        the next generation may be smaller.
        """
        record = record_with_new_member_id(group, member)
        if record is not None and encoded([record], attempt.now_ms)[1] <= self._max_batch_bytes():
            attempt.builder.write_only(record)


def _protocols(request: JoinGroupRequest) -> Protocols:
    protocols: Protocols = {}
    for protocol in request.protocols:
        protocols.setdefault(protocol.name, protocol.metadata)
    return protocols
