"""Sessions of members: a member that sends no heartbeat within its session timeout is fenced.

A heartbeat must be cheap, so it only stores the time. The single timer of a member checks that time when it fires, and
starts again for the rest. Timers use the monotonic clock, but operations know only the wall clock. If the time that a
timer took shows that the wall clock was changed, the stored time is ignored, and a member that sent any heartbeat since
gets a full session timeout.
"""

from functools import partial
from typing import Protocol

from quire.coordinators.runtime.machine import Timers
from quire.coordinators.runtime.result import CoordinatorResult

CLOCK_SLACK_MS = 1000


class MemberFencing(Protocol):
    def fence_member(self, group_id: str, member_id: str, now_ms: int) -> CoordinatorResult[None]: ...


class _Session:
    __slots__ = ("armed_ms", "delay_ms", "is_renewed", "renewed_ms", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.renewed_ms = 0
        self.is_renewed = False
        self.armed_ms = 0
        self.delay_ms = 0


class Sessions:
    __slots__ = ("_fencing", "_sessions", "_timers")

    def __init__(self, timers: Timers, fencing: MemberFencing) -> None:
        self._timers = timers
        self._fencing = fencing
        self._sessions: dict[tuple[str, str], _Session] = {}

    def renew_session(self, group_id: str, member_id: str, timeout_ms: int, now_ms: int) -> None:
        key = group_id, member_id
        session = self._sessions.get(key)
        if session is None or session.timeout_ms != timeout_ms:
            session = self._sessions[key] = _Session(timeout_ms)
            self._arm(key, session, timeout_ms, now_ms)
        session.renewed_ms = now_ms
        session.is_renewed = True

    def forget(self, group_id: str, member_id: str) -> None:
        if self._sessions.pop((group_id, member_id), None) is not None:
            self._timers.cancel(("session", group_id, member_id))

    def _arm(self, key: tuple[str, str], session: _Session, delay_ms: int, now_ms: int) -> None:
        session.is_renewed = False
        session.armed_ms = now_ms
        session.delay_ms = delay_ms
        self._timers.schedule(("session", *key), delay_ms, partial(self._timer_fired, key, session))

    def _timer_fired(self, key: tuple[str, str], session: _Session, now_ms: int) -> CoordinatorResult[None]:
        took_ms = now_ms - session.armed_ms
        clock_changed = abs(took_ms - session.delay_ms) > CLOCK_SLACK_MS
        left_ms = session.renewed_ms + session.timeout_ms - now_ms
        if clock_changed and session.is_renewed:
            left_ms = session.timeout_ms
        if session.is_renewed and left_ms > 0:
            self._arm(key, session, min(left_ms, session.timeout_ms), now_ms)
            return CoordinatorResult(None)
        result = self._fencing.fence_member(*key, now_ms)
        if result.records:
            # The replay of the tombstone ends the session. If the log refuses the records, the timer tries again.
            self._arm(key, session, session.timeout_ms, now_ms)
        else:
            del self._sessions[key]
        return result
