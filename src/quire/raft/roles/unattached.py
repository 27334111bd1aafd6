"""Unattached: knows the epoch, may have voted in it, and follows no leader.

A voter waits for a leader to announce itself and starts an election if none does. It need not wait if it is the only
voter, or in a new quorum that never had a leader. An observer asks voters and bootstrap servers for the leader, one
after another.
"""

from typing import ClassVar

from quire.raft.quorum_state import Election
from quire.raft.replica import Replica
from quire.raft.roles.role import Become, Kind, Role


class Unattached(Role):
    __slots__ = ()
    kind: ClassVar[Kind] = Kind.UNATTACHED

    def __init__(self, replica: Replica, election: Election, now_ms: float, previous: Role | None) -> None:
        super().__init__(replica, election, now_ms, previous)
        self.deadline_ms = now_ms + self._patience_ms(replica, previous)

    def _patience_ms(self, replica: Replica, previous: Role | None) -> int:
        if not replica.may_campaign:
            return replica.settings.retry_backoff_ms
        if previous is not None and previous.kind is Kind.CANDIDATE and previous.epoch == self.epoch:
            return replica.random_election_backoff_ms()
        if self.epoch == 0 and replica.log.end_offset == 0:
            return replica.quick_election_jitter_ms()
        return replica.random_election_timeout_ms()

    def entered(self, replica: Replica, now_ms: float) -> Become | None:
        if replica.is_only_voter and replica.may_campaign:
            return Become(Kind.PROSPECTIVE, self.election)
        return None

    def pre_vote_granted(self, replica: Replica, now_ms: float) -> None:
        """Leaves the other one the time to win: two candidates of one epoch would split the votes."""
        self.deadline_ms = max(self.deadline_ms, now_ms + 4 * replica.settings.quick_election_jitter_ms)

    def timed_out(self, replica: Replica, now_ms: float) -> Become | None:
        if replica.may_campaign:
            return Become(Kind.PROSPECTIVE, self.election)
        has_asked = self.look_for_leader(replica, [*replica.voters.others(replica.key), *replica.bootstrap])
        patience_ms = replica.settings.fetch_timeout_ms if has_asked else replica.settings.retry_backoff_ms
        self.deadline_ms = now_ms + patience_ms
        return None

    def unreachable(self, replica: Replica, peer: int, fetch: int | None, now_ms: float) -> Become | None:
        """Also called if `peer` knows no leader either."""
        if not replica.may_campaign:
            self.deadline_ms = min(self.deadline_ms, now_ms + replica.settings.retry_backoff_ms)
        return None
