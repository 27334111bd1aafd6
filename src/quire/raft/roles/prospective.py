"""Prospective: asks whether an election could be won before it starts one (pre-vote, KIP-996).

Nothing is promised in this role and the epoch stays as it is, so a replica that was cut off and comes back cannot
unseat a leader that a majority still hears from.
"""

from typing import ClassVar

from quire.raft.messages import VoteAnswer, VoteRequest
from quire.raft.quorum_state import Election
from quire.raft.replica import Replica
from quire.raft.roles.role import Become, Kind, Role
from quire.raft.votes import Votes


class Prospective(Role):
    __slots__ = ("_votes",)
    kind: ClassVar[Kind] = Kind.PROSPECTIVE

    def __init__(self, replica: Replica, election: Election, now_ms: float, previous: Role | None) -> None:
        super().__init__(replica, election, now_ms, previous)
        self.deadline_ms = now_ms + replica.random_election_timeout_ms()
        self._votes = Votes(replica.voters, replica.key)

    def entered(self, replica: Replica, now_ms: float) -> Become | None:
        request = VoteRequest(self.epoch, replica.key, replica.log.last, pre_vote=True)
        for peer in replica.voters.others(replica.key):
            replica.send(peer, request)
        return self._outcome(replica)

    def vote_answered(self, replica: Replica, sender: int, answer: VoteAnswer, now_ms: float) -> Become | None:
        if not answer.pre_vote:
            return None
        self._votes.count(sender, answer.granted)
        return self._outcome(replica)

    def timed_out(self, replica: Replica, now_ms: float) -> Become | None:
        return self._give_up(replica)

    def _outcome(self, replica: Replica) -> Become | None:
        if self._votes.won:
            return Become(Kind.CANDIDATE, Election(self.epoch + 1, voted=replica.key))
        return self._give_up(replica) if self._votes.lost else None

    def _give_up(self, replica: Replica) -> Become:
        has_leader = self.election.leader_id not in (None, replica.key.id)
        return Become(Kind.FOLLOWER if has_leader else Kind.UNATTACHED, self.election)
