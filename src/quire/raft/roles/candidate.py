"""Candidate: has opened a new epoch, voted for itself in it, and asks the other voters for theirs."""

from typing import ClassVar

from quire.raft.quorum_state import Election
from quire.raft.replica import Replica
from quire.raft.replicas import ReplicaKey
from quire.raft.roles.campaigning import Campaigning
from quire.raft.roles.role import Become, Kind, Role


class Candidate(Campaigning):
    __slots__ = ()
    kind: ClassVar[Kind] = Kind.CANDIDATE
    pre_vote: ClassVar[bool] = False

    def __init__(self, replica: Replica, election: Election, now_ms: float, previous: Role | None) -> None:
        super().__init__(replica, election, now_ms, previous)
        assert election.voted == replica.key, "a candidate votes for itself"

    @property
    def granting(self) -> tuple[ReplicaKey, ...]:
        return self._round.granting

    def won(self, replica: Replica) -> Become:
        return Become(Kind.LEADER, Election(self.epoch, leader_id=replica.key.id))

    def lost(self, replica: Replica) -> Become:
        replica.elections_lost += 1
        return Become(Kind.UNATTACHED, self.election)

    def undecided(self, replica: Replica) -> Become:
        return Become(Kind.PROSPECTIVE, self.election)
