"""A member is fenced exactly one session timeout after its last heartbeat, whatever the wall clock does."""

import pytest

from quire.coordinators.group.consumer.sessions import Sessions
from quire.coordinators.runtime.result import CoordinatorResult
from simulator.clock import SimClock
from tests.coordinators.sim_shard import SimTimers

SESSION_MS = 45_000


class Watched:
    """Sessions on virtual time; `gone` has the fenced members with the times."""

    def __init__(self) -> None:
        self.clock = SimClock()
        self.gone: list[tuple[str, float]] = []
        self.timers = SimTimers(self.clock, lambda operation: operation(self.clock.now_ms()))
        self.sessions = Sessions(self.timers, self)

    def fence_member(self, group_id: str, member_id: str, now_ms: int) -> CoordinatorResult[None]:
        self.gone.append((member_id, self.clock.monotonic_ms()))
        return CoordinatorResult(None)

    def renew(self, member_id: str, timeout_ms: int = SESSION_MS) -> None:
        self.sessions.renew_session("group", member_id, timeout_ms, self.clock.now_ms())


def test_a_silent_member_is_removed_when_its_session_ends() -> None:
    watched = Watched()
    watched.renew("alice")
    watched.clock.run_for(SESSION_MS - 1)
    assert watched.gone == []
    watched.clock.run_for(1)
    assert watched.gone == [("alice", SESSION_MS)]


def test_a_member_is_removed_a_session_after_its_last_heartbeat() -> None:
    watched = Watched()
    watched.renew("alice")
    for _ in range(7):
        watched.clock.run_for(13_000)
        watched.renew("alice")
    watched.clock.run_for(10 * SESSION_MS)
    assert watched.gone == [("alice", 7 * 13_000 + SESSION_MS)]


def test_a_heartbeat_sets_no_timer() -> None:
    watched = Watched()
    watched.renew("alice")
    set_for = [timer.when_ms for timer in watched.timers._timers.values()]
    for _ in range(100):
        watched.clock.run_for(100)
        watched.renew("alice")
    assert [timer.when_ms for timer in watched.timers._timers.values()] == set_for


def test_a_member_that_left_is_not_waited_for() -> None:
    watched = Watched()
    watched.renew("alice")
    watched.sessions.forget("group", "alice")
    watched.sessions.forget("group", "nobody")
    assert watched.timers.keys == []


def test_a_session_of_another_length_counts_from_now_on() -> None:
    watched = Watched()
    watched.renew("alice", 45_000)
    watched.renew("alice", 6_000)
    watched.clock.run_for(6_000)
    assert watched.gone == [("alice", 6_000)]


@pytest.mark.parametrize("jump_ms", [-3_600_000, -60_000, 60_000, 3_600_000])
def test_a_member_that_sends_heartbeats_stays_when_the_wall_clock_jumps(jump_ms: int) -> None:
    watched = Watched()
    watched.renew("alice")
    for beat in range(100):
        watched.clock.run_for(5_000)
        if beat == 50:
            watched.clock.jump_wall(jump_ms)
        watched.renew("alice")
    assert watched.gone == []


@pytest.mark.parametrize("jump_ms", [-3_600_000, -60_000, -2000, 2000, 60_000, 3_600_000])
def test_a_silent_member_is_removed_within_two_sessions_when_the_wall_clock_jumps(jump_ms: int) -> None:
    watched = Watched()
    watched.renew("alice")
    watched.clock.run_for(20_000)
    watched.renew("alice")
    watched.clock.jump_wall(jump_ms)
    watched.clock.run_for(20_000 + 2 * SESSION_MS)
    assert [member for member, _ in watched.gone] == ["alice"]
    assert watched.gone[0][1] >= 20_000 + SESSION_MS
