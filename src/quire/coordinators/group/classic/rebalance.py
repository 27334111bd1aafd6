"""Rebalance: how a group gets from one generation to the next.

A rebalance starts when a member joins, leaves, changes its protocols, or its session expires. In the join phase all
members must join again, within the longest rebalance timeout among them. Members that do not are removed, except static
members. Then the next generation starts with the sync phase, in which its members have the same time to ask for their
assignment. The join phase of an empty group takes at least `group.initial.rebalance.delay.ms`, and longer while members
keep joining. Otherwise a hundred consumers that start at the same time would cause a hundred rebalances.
"""

from functools import partial

from quire.config.broker_config import BrokerConfig
from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.group_record import group_record
from quire.coordinators.group.classic.join_response import join_response
from quire.coordinators.group.classic.member import Member, PendingJoinResponse, PendingSyncResponse
from quire.coordinators.group.classic.sessions import Sessions
from quire.coordinators.group.classic.state import ClassicState
from quire.coordinators.runtime.machine import Timers
from quire.coordinators.runtime.result_builder import ResultBuilder, timed
from quire.protocol.errors import ApiError, ErrorCode

SHORTEST_WAIT_MS = 100
"""Between two checks of a group that no member joins, whatever rebalance timeout its members ask for."""

_REFUSE = "classic refuse"


class Rebalance:
    __slots__ = ("_config", "_refused", "_timers", "sessions")

    def __init__(self, config: BrokerConfig, timers: Timers) -> None:
        self._config = config
        self._timers = timers
        self._refused: list[PendingJoinResponse | PendingSyncResponse] = []
        self.sessions = Sessions(timers, self)

    # --- Start

    def prepare_or_complete_join(self, group: ClassicGroup, now_ms: int, builder: ResultBuilder) -> None:
        """The group has changed: starts a rebalance, or completes the join phase if that is now possible."""
        if group.state is ClassicState.PREPARING_REBALANCE:
            self.maybe_complete_join(group, now_ms, builder)
        else:
            self.prepare(group, now_ms, builder)

    def prepare(self, group: ClassicGroup, now_ms: int, builder: ResultBuilder) -> None:
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self._cancel_sync_phase(group, builder)
        self.end_sync_phase(group)
        group.is_initial_rebalance = group.state is ClassicState.EMPTY
        group.new_member_added = False
        group.move_to(ClassicState.PREPARING_REBALANCE, now_ms)
        if group.is_initial_rebalance:
            delay_ms = self._initial_delay_ms()
            self._schedule_initial_join(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        elif group.all_members_joined:
            self._complete_join(group, now_ms, builder)
        else:
            self._complete_join_after(group, group.rebalance_timeout_ms)

    def prepare_soon(self, group: ClassicGroup) -> None:
        """For a group without a leader that is found during a replay, when no operation runs."""
        self._timers.schedule(_join_key(group), 0, timed(partial(self._prepare_leaderless, group)))

    def _prepare_leaderless(self, group: ClassicGroup, now_ms: int, builder: ResultBuilder) -> None:
        if group.is_leaderless and group.state is ClassicState.STABLE:
            self.prepare(group, now_ms, builder)

    def end_sync_phase(self, group: ClassicGroup) -> None:
        group.pending_sync_members.clear()
        self._timers.cancel(_sync_key(group))

    def _cancel_sync_phase(self, group: ClassicGroup, builder: ResultBuilder) -> None:
        """The assignment that SyncGroup requests wait for will not come: their members must join again."""
        error = ApiError(ErrorCode.REBALANCE_IN_PROGRESS, "the group rebalances again: join again")
        for member in group.members.values():
            member.assignment = b""
            waiting = group.take_sync(member)
            if waiting is not None:
                builder.respond(waiting, error)
                self.sessions.renew_session(member)

    # --- Stop

    def stop(self, group: ClassicGroup) -> None:
        """Cancels all timers of the group."""
        self._timers.cancel(_join_key(group))
        self._timers.cancel(_sync_key(group))
        for member_id in (*group.members, *group.pending_members):
            self.sessions.end(group, member_id)

    def refuse_waiting(self, group: ClassicGroup) -> None:
        """Tells waiting members to join again. A timer does it, because this is called during a replay."""
        self._refused += group.take_all_waiting()
        if self._refused:
            self._timers.schedule(_REFUSE, 0, timed(self._respond_refused))

    def take_refused(self) -> list[PendingJoinResponse | PendingSyncResponse]:
        """The refused requests that have no response yet. The caller must complete them."""
        refused, self._refused = self._refused, []
        return refused

    def _respond_refused(self, now_ms: int, builder: ResultBuilder) -> None:
        error = ApiError(
            ErrorCode.REBALANCE_IN_PROGRESS, "the group was deleted or has changed its protocol: join again"
        )
        for waiting in self.take_refused():
            builder.respond(waiting, error)

    # --- Join phase

    def _schedule_initial_join(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """Waits `delay_ms` for the first members of a group, and `remaining_ms` at most after that."""
        step = timed(partial(self._complete_or_extend_initial_join, group, remaining_ms))
        self._timers.schedule(_join_key(group), delay_ms, step)

    def _complete_or_extend_initial_join(
        self, group: ClassicGroup, remaining_ms: int, now_ms: int, builder: ResultBuilder
    ) -> None:
        if group.new_member_added and remaining_ms > 0:
            group.new_member_added = False
            next_ms = min(self._initial_delay_ms(), remaining_ms)
            self._schedule_initial_join(group, next_ms, remaining_ms - next_ms)
        else:
            self._complete_join(group, now_ms, builder)

    def _initial_delay_ms(self) -> int:
        return self._config.get_int("group.initial.rebalance.delay.ms")

    def _complete_join_after(self, group: ClassicGroup, delay_ms: int) -> None:
        self._timers.schedule(_join_key(group), delay_ms, timed(partial(self._complete_join, group)))

    def maybe_complete_join(self, group: ClassicGroup, now_ms: int, builder: ResultBuilder) -> None:
        """Ends the join phase if all members have joined. The initial one ends by its timer only."""
        if group.state is not ClassicState.PREPARING_REBALANCE or group.is_initial_rebalance:
            return
        if group.all_members_joined:
            self._complete_join(group, now_ms, builder)

    def _complete_join(self, group: ClassicGroup, now_ms: int, builder: ResultBuilder) -> None:
        self._timers.cancel(_join_key(group))
        for member in list(group.members.values()):
            if member.awaiting_join is None and not member.is_static:
                self._remove(group, member)
        if group.members and not group.elect_joined_leader():
            # Only static members are left and none has joined: one joins later, or their sessions expire.
            self._complete_join_after(group, max(group.rebalance_timeout_ms, SHORTEST_WAIT_MS))
            return
        group.start_generation(now_ms)
        if not group.members:
            builder.write_only(group_record(group))
            return
        for member in group.members.values():
            builder.respond(group.take_join(member), join_response(group, member))
            member.is_new = False
            group.pending_sync_members[member.member_id] = None
            self.sessions.renew_session(member)
        expire = timed(partial(self._sync_phase_expired, group))
        self._timers.schedule(_sync_key(group), group.rebalance_timeout_ms, expire)

    # --- Members that leave

    def remove_member(self, group: ClassicGroup, member: Member, builder: ResultBuilder) -> None:
        """The caller must start the rebalance that follows."""
        error = ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"no longer a member of group {group.group_id}: join again")
        builder.respond(group.take_join(member), error)
        builder.respond(group.take_sync(member), error)
        self._remove(group, member)

    def remove_pending_member(self, group: ClassicGroup, member_id: str) -> None:
        del group.pending_members[member_id]
        self.sessions.end(group, member_id)

    def _remove(self, group: ClassicGroup, member: Member) -> None:
        self.sessions.end(group, member.member_id)
        group.remove(member)

    def session_expired(self, group: ClassicGroup, member_id: str, now_ms: int, builder: ResultBuilder) -> None:
        member = group.members.get(member_id)
        if member_id in group.pending_members:
            self.remove_pending_member(group, member_id)
            self.maybe_complete_join(group, now_ms, builder)
        elif member is not None and member.may_expire:
            self.remove_member(group, member, builder)
            self.prepare_or_complete_join(group, now_ms, builder)

    def _sync_phase_expired(self, group: ClassicGroup, now_ms: int, builder: ResultBuilder) -> None:
        """Removes the members that have not sent SyncGroup in time."""
        if not group.pending_sync_members:
            return
        for member_id in list(group.pending_sync_members):
            self.remove_member(group, group.members[member_id], builder)
        self.prepare(group, now_ms, builder)


def _join_key(group: ClassicGroup) -> tuple[str, str]:
    return ("classic join", group.group_id)


def _sync_key(group: ClassicGroup) -> tuple[str, str]:
    return ("classic sync", group.group_id)
