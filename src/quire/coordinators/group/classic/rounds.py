"""Rounds: how a group comes from one generation to the next.

A round begins when somebody joins, leaves, is not heard of any more or wants something else. Everybody has to join
again, for as long as the slowest may take; who has not by then is out, static members excepted. With that a generation
begins, and its members have as long again to ask for their assignment. The first round of an empty group lasts at least
`group.initial.rebalance.delay.ms`, and longer while members keep coming: or a hundred consumers that are started at
once would go through a hundred rounds.
"""

from quire.config.broker_config import BrokerConfig
from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.group_record import group_record
from quire.coordinators.group.classic.join_response import join_response
from quire.coordinators.group.classic.member import JoinAnswer, Member, SyncAnswer
from quire.coordinators.group.classic.outcome import Outcome, timed
from quire.coordinators.group.classic.sessions import Sessions
from quire.coordinators.group.classic.state import ClassicState
from quire.coordinators.runtime.machine import Timers
from quire.protocol.errors import ApiError, ErrorCode

SHORTEST_WAIT_MS = 100
"""Between two looks at a group of which nobody joins, whatever rebalance timeout its members ask for."""

_SEND_BACK = "classic send back"


class Rounds:
    __slots__ = ("_config", "_sent_back", "_timers", "sessions")

    def __init__(self, config: BrokerConfig, timers: Timers) -> None:
        self._config = config
        self._timers = timers
        self._sent_back: list[JoinAnswer | SyncAnswer] = []
        self.sessions = Sessions(timers, self._session_over)

    # Beginning

    def begin_or_go_on(self, group: ClassicGroup, now_ms: int, outcome: Outcome) -> None:
        """Something has changed: the next round is due, unless one is under way, which may be complete now."""
        if group.state is ClassicState.PREPARING_REBALANCE:
            self.complete_if_everybody_joined(group, now_ms, outcome)
        else:
            self.begin(group, now_ms, outcome)

    def begin(self, group: ClassicGroup, now_ms: int, outcome: Outcome) -> None:
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self._call_back_syncs(group, outcome)
        self.end_syncing(group)
        group.is_first_round = group.state is ClassicState.EMPTY
        group.joined_since = False
        group.move_to(ClassicState.PREPARING_REBALANCE, now_ms)
        if group.is_first_round:
            delay_ms = self._initial_delay_ms()
            self._gather(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        elif group.everybody_joined:
            self._complete(group, now_ms, outcome)
        else:
            self._complete_after(group, group.rebalance_timeout_ms)

    def begin_soon(self, group: ClassicGroup) -> None:
        """For when records are being taken over."""

        def begin(now_ms: int, outcome: Outcome) -> None:
            if group.is_leaderless and group.state is ClassicState.STABLE:
                self.begin(group, now_ms, outcome)

        self._timers.schedule(_join_key(group), 0, timed(begin))

    def end_syncing(self, group: ClassicGroup) -> None:
        group.unsynced_members.clear()
        self._timers.cancel(_sync_key(group))

    def stop(self, group: ClassicGroup) -> None:
        """No timer of the group's is left."""
        self._timers.cancel(_join_key(group))
        self._timers.cancel(_sync_key(group))
        for member_id in (*group.members, *group.pending_members):
            self.sessions.end(group, member_id)

    def send_back(self, group: ClassicGroup) -> None:
        """Whoever waits is told to join again; soon, for this is called while records are being taken over."""
        self._sent_back += group.take_all_waiting()
        if self._sent_back:
            self._timers.schedule(_SEND_BACK, 0, timed(self._answer_sent_back))

    def take_sent_back(self) -> list[JoinAnswer | SyncAnswer]:
        """Who has not been told yet. Whoever takes them, answers them."""
        sent_back, self._sent_back = self._sent_back, []
        return sent_back

    def _answer_sent_back(self, now_ms: int, outcome: Outcome) -> None:
        error = ApiError(ErrorCode.REBALANCE_IN_PROGRESS, "the group is another one now: join again")
        for waiting in self.take_sent_back():
            outcome.answer(waiting, error)

    def _call_back_syncs(self, group: ClassicGroup, outcome: Outcome) -> None:
        """What they waited for will not come: they join again."""
        error = ApiError(ErrorCode.REBALANCE_IN_PROGRESS, "the group rebalances again: join again")
        for member in group.members.values():
            member.assignment = b""
            waiting = group.take_sync(member)
            if waiting is not None:
                outcome.answer(waiting, error)
                self.sessions.heard_of(member)

    # Joining

    def _gather(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """Waits for the members of a first round: `delay_ms` now, `remaining_ms` at most after that."""

        def look(now_ms: int, outcome: Outcome) -> None:
            if group.joined_since and remaining_ms > 0:
                group.joined_since = False
                next_ms = min(self._initial_delay_ms(), remaining_ms)
                self._gather(group, next_ms, remaining_ms - next_ms)
            else:
                self._complete(group, now_ms, outcome)

        self._timers.schedule(_join_key(group), delay_ms, timed(look))

    def _initial_delay_ms(self) -> int:
        return self._config.get_int("group.initial.rebalance.delay.ms")

    def _complete_after(self, group: ClassicGroup, delay_ms: int) -> None:
        self._timers.schedule(_join_key(group), delay_ms, timed(lambda *given: self._complete(group, *given)))

    def complete_if_everybody_joined(self, group: ClassicGroup, now_ms: int, outcome: Outcome) -> None:
        if group.state is not ClassicState.PREPARING_REBALANCE or group.is_first_round:
            return
        if group.everybody_joined:
            self._complete(group, now_ms, outcome)

    def _complete(self, group: ClassicGroup, now_ms: int, outcome: Outcome) -> None:
        self._timers.cancel(_join_key(group))
        for member in list(group.members.values()):
            if member.awaiting_join is None and not member.is_static:
                self._remove(group, member)
        if group.members and not group.elect_joined_leader():
            # Static members only, and none of them is there: one will be, or its session ends.
            self._complete_after(group, max(group.rebalance_timeout_ms, SHORTEST_WAIT_MS))
            return
        group.start_generation(now_ms)
        if not group.members:
            outcome.write(group_record(group))
            return
        for member in group.members.values():
            outcome.answer(group.take_join(member), join_response(group, member))
            member.is_new = False
            group.unsynced_members[member.member_id] = None
            self.sessions.heard_of(member)
        expire = timed(lambda *given: self._syncing_over(group, *given))
        self._timers.schedule(_sync_key(group), group.rebalance_timeout_ms, expire)

    # Leaving

    def leave(self, group: ClassicGroup, member: Member, outcome: Outcome) -> None:
        """Takes the member out; the round that this calls for is the caller's to begin."""
        error = ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"no longer a member of group {group.group_id}: join again")
        outcome.answer(group.take_join(member), error)
        outcome.answer(group.take_sync(member), error)
        self._remove(group, member)

    def drop_pending(self, group: ClassicGroup, member_id: str) -> None:
        del group.pending_members[member_id]
        self.sessions.end(group, member_id)

    def _remove(self, group: ClassicGroup, member: Member) -> None:
        self.sessions.end(group, member.member_id)
        group.remove(member)

    def _session_over(self, group: ClassicGroup, member_id: str, now_ms: int, outcome: Outcome) -> None:
        member = group.members.get(member_id)
        if member_id in group.pending_members:
            self.drop_pending(group, member_id)
            self.complete_if_everybody_joined(group, now_ms, outcome)
        elif member is not None and member.may_expire:
            self.leave(group, member, outcome)
            self.begin_or_go_on(group, now_ms, outcome)

    def _syncing_over(self, group: ClassicGroup, now_ms: int, outcome: Outcome) -> None:
        """Who has not asked for its assignment by now is not there any more."""
        if not group.unsynced_members:
            return
        for member_id in list(group.unsynced_members):
            self.leave(group, group.members[member_id], outcome)
        self.begin(group, now_ms, outcome)


def _join_key(group: ClassicGroup) -> tuple[str, str]:
    return ("classic join", group.group_id)


def _sync_key(group: ClassicGroup) -> tuple[str, str]:
    return ("classic sync", group.group_id)
