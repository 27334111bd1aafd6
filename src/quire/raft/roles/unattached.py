"""Unattached: knows the epoch, perhaps voted in it, follows nobody.

A voter waits for a leader to announce itself and runs for election when none does. The only voter of a quorum has
nobody to wait for. A replica that does not vote asks one voter after another who leads.
"""

from typing import ClassVar

from quire.raft.messages import FetchRequest
from quire.raft.quorum_state import Election
from quire.raft.replica import Replica
from quire.raft.roles.role import Become, Kind, Role


class Unattached(Role):
    __slots__ = ()
    kind: ClassVar[Kind] = Kind.UNATTACHED

    def __init__(self, replica: Replica, election: Election, now_ms: float, previous: Role | None) -> None:
        super().__init__(replica, election, now_ms, previous)
        lost = previous is not None and previous.kind is Kind.CANDIDATE and previous.epoch == election.epoch
        if lost:
            self.deadline_ms = now_ms + replica.random.below(replica.settings.election_backoff_max_ms + 1)
        elif replica.is_voter:
            self.deadline_ms = now_ms + replica.random_election_timeout_ms()
        else:
            self.deadline_ms = now_ms + replica.settings.retry_backoff_ms

    def entered(self, replica: Replica, now_ms: float) -> Become | None:
        if replica.is_only_voter and not replica.stopping:
            return Become(Kind.PROSPECTIVE, self.election)
        return None

    def timed_out(self, replica: Replica, now_ms: float) -> Become | None:
        if replica.is_voter:
            return Become(Kind.PROSPECTIVE, self.election)
        others = replica.voters.others(replica.key)
        last = replica.log.last
        replica.send(
            others[replica.random.below(len(others))], FetchRequest(self.epoch, replica.key, last.offset, last.epoch)
        )
        self.deadline_ms = now_ms + replica.settings.fetch_timeout_ms
        return None
