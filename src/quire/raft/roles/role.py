"""What every role answers to. A handler returns what to become next, or None to stay as it is.

A role never changes another: it asks, and the core checks the wish against the transition table and the promises of
the election before it builds the next role.
"""

from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import ClassVar

from quire.raft.messages import FetchAnswer, FetchRequest, VoteAnswer, VoteRequest
from quire.raft.quorum_state import Election
from quire.raft.replica import Replica


class Kind(Enum):
    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


@dataclass(frozen=True, slots=True)
class Become:
    kind: Kind
    election: Election


class Role:
    """A role in one epoch. Defaults are those of a role that does not care."""

    __slots__ = ("deadline_ms", "election")
    kind: ClassVar[Kind]

    def __init__(self, replica: Replica, election: Election, now_ms: float, previous: "Role | None") -> None:
        self.election = election
        self.deadline_ms: float = inf

    @property
    def epoch(self) -> int:
        return self.election.epoch

    def entered(self, replica: Replica, now_ms: float) -> Become | None:
        return None

    def timed_out(self, replica: Replica, now_ms: float) -> Become | None:
        """`deadline_ms` has passed."""
        return None

    def grants(self, replica: Replica, request: VoteRequest) -> bool:
        """Whether to vote for a candidate of this epoch."""
        if request.pre_vote:
            return replica.is_behind(request.last)
        if self.election.leader_id is not None:
            return False
        if self.election.voted is not None:
            return self.election.voted.matches(request.candidate)
        return replica.is_behind(request.last)

    def vote_answered(self, replica: Replica, sender: int, answer: VoteAnswer, now_ms: float) -> Become | None:
        return None

    def fetch_requested(self, replica: Replica, sender: int, request: FetchRequest, now_ms: float) -> Become | None:
        replica.send(sender, FetchAnswer(self.epoch, self.election.leader_id, request.asked_at, fenced=True))
        return None

    def fetch_answered(self, replica: Replica, answer: FetchAnswer, now_ms: float) -> Become | None:
        return None

    def unreachable(self, replica: Replica, peer: int, now_ms: float) -> Become | None:
        return None

    def synced(self, replica: Replica, now_ms: float) -> Become | None:
        return None

    def snapshot_installed(self, replica: Replica, now_ms: float) -> Become | None:
        return None

    def leader_resigned(self, replica: Replica, successors: tuple[int, ...], now_ms: float) -> Become | None:
        return None
