"""The interface of every role. A handler returns the next role, or None to stay.

A role never creates another one: the core checks the transition against the table and the promises of the election,
then builds the next role.
"""

from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import ClassVar

from quire.protocol.errors import ApiError, ErrorCode
from quire.raft.control_state import ControlState
from quire.raft.effects import ChangeVoters, LeadershipChecked, VotersChanged
from quire.raft.log_summary import LogPosition
from quire.raft.messages import EpochAnswer, FetchAnswer, FetchRequest, VoteAnswer, VoteRequest
from quire.raft.quorum_state import Election
from quire.raft.refusals import not_leader
from quire.raft.replica import Replica
from quire.raft.replicas import ReplicaKey


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
    """A role in one epoch. By default it ignores events."""

    __slots__ = ("deadline_ms", "election")
    kind: ClassVar[Kind]

    def __init__(self, replica: Replica, election: Election, now_ms: float, previous: "Role | None") -> None:
        self.election = election
        self.deadline_ms: float = inf

    @property
    def epoch(self) -> int:
        return self.election.epoch

    def known_leader(self, replica: Replica) -> int | None:
        """The leader, unless that was this replica before it restarted or resigned."""
        leader_id = self.election.leader_id
        return None if leader_id == replica.key.id and self.kind is not Kind.LEADER else leader_id

    def look_for_leader(self, replica: Replica, peers: list[int]) -> bool:
        """Asks one of `peers`, by a fetch: one that does not lead names the leader. False if it cannot ask now.

        A fetch promises that the log is on disk up to its end, and the one that is asked may be the leader.
        """
        if not peers or not replica.log.is_synced:
            return False
        last = replica.log.last
        peer = peers[replica.random.below(len(peers))]
        number = replica.next_fetch_number()
        replica.send(peer, FetchRequest(self.epoch, replica.key, last.offset, last.epoch, number=number))
        return True

    def entered(self, replica: Replica, now_ms: float) -> Become | None:
        return None

    def left(self, replica: Replica) -> None:
        """Another role follows."""

    def resigns(self, replica: Replica) -> Become | None:
        """This replica must no longer lead; `replica.stopping` is set."""
        return None

    def change_voters(self, replica: Replica, event: ChangeVoters, now_ms: float) -> Become | None:
        error = _not_leader()
        replica.emit(VotersChanged(event.request_id, error.code, error.message))
        return None

    def check_upgrade(self, replica: Replica, version: int) -> None:
        """ApiError if the version of KRaft cannot be changed to this one now."""
        raise _not_leader()

    def check_leadership(self, replica: Replica, request_id: int) -> None:
        replica.emit(LeadershipChecked(request_id, leads=False))

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

    def pre_vote_granted(self, replica: Replica, now_ms: float) -> None:
        """This replica told another that it would vote for it."""

    def vote_answered(self, replica: Replica, sender: int, answer: VoteAnswer, now_ms: float) -> Become | None:
        return None

    def epoch_answered(self, replica: Replica, sender: int, answer: EpochAnswer) -> None:
        """A replica of this epoch answers an announcement."""

    def fetch_requested(self, replica: Replica, sender: int, request: FetchRequest, now_ms: float) -> Become | None:
        """Refuses, and names the leader if it is known."""
        error = not_leader(request.epoch, self.epoch)
        replica.send(sender, FetchAnswer(self.epoch, self.known_leader(replica), request.number, error=error))
        return None

    def fetch_answered(self, replica: Replica, answer: FetchAnswer, now_ms: float) -> Become | None:
        return None

    def unreachable(self, replica: Replica, peer: int, fetch: int | None, now_ms: float) -> Become | None:
        """A request to `peer` led to nothing; `fetch` is its number if it was a fetch."""
        return None

    def connection_lost(self, replica: Replica, peer: int, now_ms: float) -> Become | None:
        """An established connection to `peer` closed: its process may have ended."""
        return None

    def synced(self, replica: Replica, now_ms: float) -> Become | None:
        return None

    def snapshot_part_fetched(self, replica: Replica, position: LogPosition, now_ms: float) -> None:
        """A part of a snapshot arrived from the leader."""

    def snapshot_fetched(
        self, replica: Replica, position: LogPosition, control: ControlState, now_ms: float
    ) -> Become | None:
        """A snapshot is whole. Only a follower that still needs it replaces its log."""
        return None

    def snapshot_requested(self, replica: Replica, key: ReplicaKey, now_ms: float) -> None:
        """Another replica fetches a snapshot from this one."""

    def leader_resigned(self, replica: Replica, successors: tuple[ReplicaKey, ...], now_ms: float) -> Become | None:
        return None


def _not_leader() -> ApiError:
    return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "This node does not lead the quorum")
