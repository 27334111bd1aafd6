"""Who has not been heard of for too long.

A heartbeat must cost next to nothing, so it only notes the time; the one timer of a member looks at that note when it
fires, and is set again for what is left. Timers run on the monotonic clock, but notes are in wall-clock time, the only
one an operation is told: when that has jumped, as far as can be told from how long the timer took, the note is not
believed, and a member that was heard at all since gets a whole session more.
"""

from collections.abc import Callable

from quire.coordinators.runtime.machine import Timers
from quire.coordinators.runtime.result import Result

CLOCK_SLACK_MS = 1000

Expire = Callable[[str, str, int], Result[None]]
"""(group id, member id, now) -> what is to be written for the member to be gone."""


class _Session:
    __slots__ = ("armed_ms", "delay_ms", "heard", "heard_ms", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.heard_ms = 0
        self.heard = False
        self.armed_ms = 0
        self.delay_ms = 0


class Sessions:
    __slots__ = ("_sessions", "_timers", "expire")

    def __init__(self, timers: Timers, expire: Expire) -> None:
        self._timers = timers
        self.expire = expire
        self._sessions: dict[tuple[str, str], _Session] = {}

    def heard(self, group_id: str, member_id: str, timeout_ms: int, now_ms: int) -> None:
        key = group_id, member_id
        session = self._sessions.get(key)
        if session is None or session.timeout_ms != timeout_ms:
            session = self._sessions[key] = _Session(timeout_ms)
            self._arm(key, session, timeout_ms, now_ms)
        session.heard_ms = now_ms
        session.heard = True

    def forget(self, group_id: str, member_id: str) -> None:
        if self._sessions.pop((group_id, member_id), None) is not None:
            self._timers.cancel(("session", group_id, member_id))

    def _arm(self, key: tuple[str, str], session: _Session, delay_ms: int, now_ms: int) -> None:
        session.heard = False
        session.armed_ms = now_ms
        session.delay_ms = delay_ms
        self._timers.schedule(("session", *key), delay_ms, lambda now_ms: self._fired(key, session, now_ms))

    def _fired(self, key: tuple[str, str], session: _Session, now_ms: int) -> Result[None]:
        took_ms = now_ms - session.armed_ms
        jumped = abs(took_ms - session.delay_ms) > CLOCK_SLACK_MS
        left_ms = session.timeout_ms if jumped and session.heard else session.heard_ms + session.timeout_ms - now_ms
        if session.heard and left_ms > 0:
            self._arm(key, session, min(left_ms, session.timeout_ms), now_ms)
            return Result(None)
        result = self.expire(*key, now_ms)
        if result.records:
            # When they are taken over it is forgotten; should the log not take them, this is tried again.
            self._arm(key, session, session.timeout_ms, now_ms)
        else:
            del self._sessions[key]
        return result
