"""Candidate: has opened a new epoch, voted for itself in it, and asks the other voters for theirs."""

from typing import ClassVar

from quire.raft.messages import VoteAnswer, VoteRequest
from quire.raft.quorum_state import Election
from quire.raft.replica import Replica
from quire.raft.replicas import ReplicaKey
from quire.raft.roles.role import Become, Kind, Role
from quire.raft.votes import Votes


class Candidate(Role):
    __slots__ = ("_votes",)
    kind: ClassVar[Kind] = Kind.CANDIDATE

    def __init__(self, replica: Replica, election: Election, now_ms: float, previous: Role | None) -> None:
        super().__init__(replica, election, now_ms, previous)
        assert election.voted == replica.key, "a candidate votes for itself"
        self.deadline_ms = now_ms + replica.random_election_timeout_ms()
        self._votes = Votes(replica.voters, replica.key)

    @property
    def granting(self) -> tuple[ReplicaKey, ...]:
        return self._votes.granting

    def entered(self, replica: Replica, now_ms: float) -> Become | None:
        request = VoteRequest(self.epoch, replica.key, replica.log.last)
        for peer in replica.voters.others(replica.key):
            replica.send(peer, request)
        return self._outcome(replica)

    def vote_answered(self, replica: Replica, sender: int, answer: VoteAnswer, now_ms: float) -> Become | None:
        if answer.pre_vote:
            return None
        self._votes.count(sender, answer.granted)
        return self._outcome(replica)

    def timed_out(self, replica: Replica, now_ms: float) -> Become | None:
        return Become(Kind.PROSPECTIVE, self.election)

    def _outcome(self, replica: Replica) -> Become | None:
        if self._votes.won:
            return Become(Kind.LEADER, Election(self.epoch, leader_id=replica.key.id))
        return Become(Kind.UNATTACHED, self.election) if self._votes.lost else None
