"""What Prospective and Candidate have in common: they ask all voters, retry those that do not respond, and count."""

from typing import ClassVar

from quire.raft.messages import VoteAnswer, VoteRequest
from quire.raft.quorum_state import Election
from quire.raft.replica import Replica
from quire.raft.replicas import ReplicaKey
from quire.raft.roles.role import Become, Kind, Role
from quire.raft.votes import VoteRound


class Campaigning(Role):
    """A round of votes that ends at the latest after an election timeout."""

    __slots__ = ("_ends_at_ms", "_round")
    pre_vote: ClassVar[bool]

    def __init__(self, replica: Replica, election: Election, now_ms: float, previous: Role | None) -> None:
        super().__init__(replica, election, now_ms, previous)
        self._round = VoteRound(replica.voters, replica.key)
        self._ends_at_ms = now_ms + replica.random_election_timeout_ms()
        self._set_deadline()

    def entered(self, replica: Replica, now_ms: float) -> Become | None:
        self._ask(replica, replica.voters.other_keys(replica.key))
        return self._outcome(replica)

    def resigns(self, replica: Replica) -> Become | None:
        """Votes that are still on their way no longer count."""
        return Become(Kind.UNATTACHED, self.election)

    def vote_answered(self, replica: Replica, sender: int, answer: VoteAnswer, now_ms: float) -> Become | None:
        if answer.pre_vote is not self.pre_vote:
            return None
        self._round.count(sender, answer.granted)
        return self._outcome(replica)

    def unreachable(self, replica: Replica, peer: int, fetch: int | None, now_ms: float) -> Become | None:
        self._round.unreached(peer, now_ms + replica.settings.retry_backoff_ms)
        self._set_deadline()
        return self._outcome(replica)

    def timed_out(self, replica: Replica, now_ms: float) -> Become | None:
        if now_ms >= self._ends_at_ms:
            return self.undecided(replica)
        self._ask(replica, self._round.take_unreached())
        self._set_deadline()
        return None

    def won(self, replica: Replica) -> Become:
        raise NotImplementedError

    def lost(self, replica: Replica) -> Become:
        raise NotImplementedError

    def undecided(self, replica: Replica) -> Become:
        """The round is over, and the voters that answered do not decide it."""
        raise NotImplementedError

    def _ask(self, replica: Replica, voters: list[ReplicaKey]) -> None:
        for voter in voters:
            request = VoteRequest(self.epoch, replica.key, replica.log.last, self.pre_vote, voter)
            replica.send(voter.id, request)

    def _outcome(self, replica: Replica) -> Become | None:
        if self._round.won:
            return self.won(replica)
        return self.lost(replica) if self._round.lost else None

    def _set_deadline(self) -> None:
        self.deadline_ms = min(self._ends_at_ms, self._round.ask_again_at_ms)
