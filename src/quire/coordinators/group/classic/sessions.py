"""Who has been heard of: a member, or an id that was given out, is removed when its session is over.

Kafka's rules: every heartbeat, and every commit, gives a member its session timeout anew. One that waits in JoinGroup
or SyncGroup is not expected to be heard of. A new member is, after a long while: when its client gave up and came back,
it did so under another id, and nobody will ever answer for the first.
"""

from collections.abc import Callable

from quire.coordinators.group.classic.classic_group import ClassicGroup
from quire.coordinators.group.classic.member import Member
from quire.coordinators.group.classic.outcome import Outcome, timed
from quire.coordinators.runtime.machine import TimedOperation, Timers

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60_000

Expired = Callable[[ClassicGroup, str, int, Outcome], None]
"""(group, member_id, now_ms, outcome)"""


class Sessions:
    __slots__ = ("_expired", "_timers")

    def __init__(self, timers: Timers, expired: Expired) -> None:
        self._timers = timers
        self._expired = expired

    def start(self, group: ClassicGroup, member: Member) -> None:
        """For a member that has just got into the group; `heard_of` may be called from now on."""
        member.session_key = _key(group, member.member_id)
        member.expire = self._expiry(group, member.member_id)
        if member.is_new:
            self._timers.schedule(member.session_key, NEW_MEMBER_JOIN_TIMEOUT_MS, member.expire)
        else:
            self.heard_of(member)

    def heard_of(self, member: Member) -> None:
        """This is all that a heartbeat costs."""
        assert member.expire is not None, f"{member!r} has no session"
        self._timers.schedule(member.session_key, member.session_timeout_ms, member.expire)

    def give_up(self, member: Member) -> None:
        """Nobody will be heard of: as if its time were over, at the next opportunity."""
        assert member.expire is not None
        self._timers.schedule(member.session_key, 0, member.expire)

    def expect(self, group: ClassicGroup, pending_member_id: str, timeout_ms: int) -> None:
        """An id was given out, and should be used within `timeout_ms`."""
        key = _key(group, pending_member_id)
        self._timers.schedule(key, timeout_ms, self._expiry(group, pending_member_id))

    def end(self, group: ClassicGroup, member_id: str) -> None:
        self._timers.cancel(_key(group, member_id))

    def _expiry(self, group: ClassicGroup, member_id: str) -> TimedOperation:
        return timed(lambda now_ms, outcome: self._expired(group, member_id, now_ms, outcome))


def _key(group: ClassicGroup, member_id: str) -> tuple[str, str, str]:
    return ("classic session", group.group_id, member_id)
