"""Sessions: a member, or a member id without a member, is removed when its session timeout passes.

The rules are Kafka's. Every heartbeat and every offset commit renews the session of a member. A member that waits in
JoinGroup or SyncGroup sends no heartbeats and is not removed. The exception is a new member, which is removed after
five minutes: if its client gave up and joined again, it did so under another id, and no client uses the first one.
"""

from functools import partial
from typing import Protocol

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.member import Member
from quire.coordinators.runtime.machine import TimedOperation, Timers
from quire.coordinators.runtime.result_builder import ResultBuilder, timed

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60_000


class SessionListener(Protocol):
    def session_expired(self, group: ClassicGroup, member_id: str, now_ms: int, builder: ResultBuilder) -> None: ...


class Sessions:
    __slots__ = ("_listener", "_timers")

    def __init__(self, timers: Timers, listener: SessionListener) -> None:
        self._timers = timers
        self._listener = listener

    def start(self, group: ClassicGroup, member: Member) -> None:
        """Starts the session of a member that was added to the group, before `renew_session`."""
        member.session_key = _key(group, member.member_id)
        member.expire = self._expiry(group, member.member_id)
        if member.is_new:
            self._timers.schedule(member.session_key, NEW_MEMBER_JOIN_TIMEOUT_MS, member.expire)
        else:
            self.renew_session(member)

    def renew_session(self, member: Member) -> None:
        """All that a heartbeat costs."""
        assert member.expire is not None, f"{member!r} has no session"
        self._timers.schedule(member.session_key, member.session_timeout_ms, member.expire)

    def expire_now(self, member: Member) -> None:
        """Ends the session of a member that cannot send heartbeats, in an operation of its own."""
        assert member.expire is not None
        self._timers.schedule(member.session_key, 0, member.expire)

    def start_pending(self, group: ClassicGroup, pending_member_id: str, timeout_ms: int) -> None:
        """A client must join with the id that it was given within `timeout_ms`."""
        key = _key(group, pending_member_id)
        self._timers.schedule(key, timeout_ms, self._expiry(group, pending_member_id))

    def end(self, group: ClassicGroup, member_id: str) -> None:
        self._timers.cancel(_key(group, member_id))

    def _expiry(self, group: ClassicGroup, member_id: str) -> TimedOperation:
        return timed(partial(self._listener.session_expired, group, member_id))


def _key(group: ClassicGroup, member_id: str) -> tuple[str, str, str]:
    return ("classic session", group.group_id, member_id)
