"""The consensus state machine: an event and the time in, effects out; no clock, file or socket of its own.

`RaftCore` compares epochs, moves between roles and leaves everything else to the current role. Its caller calls `start`
once, then `step` with each event, carries out the effects in order, and calls `step(Tick())` when `deadline_ms` has
passed. Whatever arrives, these rules hold:

- one vote and one leader per epoch, on disk before a message mentions them;
- a leader's log is only appended to, and holds everything committed before it;
- the high watermark never moves back, and covers only what a majority has on disk.
"""

from collections.abc import Sequence
from typing import NamedTuple

from quire.protocol.errors import ErrorCode
from quire.raft.control_state import ControlHistory
from quire.raft.effects import (
    ChangeVoters,
    CheckLeadership,
    ConnectionLost,
    Effect,
    LeaderChanged,
    LogCleaned,
    LogSynced,
    PersistElection,
    Propose,
    RaftEvent,
    Received,
    Resign,
    SnapshotFetched,
    SnapshotPartFetched,
    SnapshotRequested,
    Tick,
    Unreachable,
)
from quire.raft.log_summary import LogSummary
from quire.raft.messages import BeginEpoch, EndEpoch, EpochAnswer, FetchAnswer, FetchRequest, VoteAnswer, VoteRequest
from quire.raft.progress import ReplicaProgress
from quire.raft.quorum_state import Election
from quire.raft.replica import Replica
from quire.raft.replicas import ReplicaKey, VoterSet
from quire.raft.roles.leader import Leader
from quire.raft.roles.role import Become, Kind, Role
from quire.raft.settings import QuorumSettings
from quire.raft.transitions import ALLOWED, ROLES, STARTS_AS
from quire.seams import Random


class NotLeaderError(Exception):
    """Records were proposed to a replica that does not lead."""


class QuorumView(NamedTuple):
    """The quorum as this replica sees it; only the leader knows the progress of others."""

    leader_id: int | None
    epoch: int
    high_watermark: int | None
    voters: list[ReplicaProgress]
    observers: list[ReplicaProgress]


class RaftCore:
    __slots__ = ("_epoch_said_to_lead", "_replica", "_role")

    def __init__(
        self,
        key: ReplicaKey,
        control: ControlHistory,
        log: LogSummary,
        random: Random,
        settings: QuorumSettings | None = None,
        bootstrap: Sequence[int] = (),
        snapshot_offset: int = 0,
    ) -> None:
        """The machine owns `control` and `log` from now on. `bootstrap` are peers without a node id: -2, -3, ...

        `snapshot_offset` is the end of the newest snapshot, if that is later than the start of the log.
        """
        settings = settings or QuorumSettings()
        self._replica = Replica(key, control, log, random, settings, bootstrap, snapshot_offset)
        self._role: Role | None = None
        self._epoch_said_to_lead: int | None = None

    # --- State

    @property
    def role(self) -> Role:
        assert self._role is not None, "start the machine first"
        return self._role

    @property
    def kind(self) -> Kind:
        return self.role.kind

    @property
    def epoch(self) -> int:
        return self.role.epoch

    @property
    def leader_id(self) -> int | None:
        """The leader as far as this replica knows; a leader that restarted or resigned no longer counts."""
        return self.role.known_leader(self._replica)

    @property
    def is_leader(self) -> bool:
        return self._role is not None and self._role.kind is Kind.LEADER

    @property
    def is_taken_for_leader(self) -> bool:
        """Whether others say that this replica leads the epoch, which it never did."""
        return not self.is_leader and self._epoch_said_to_lead == self.epoch

    @property
    def high_watermark(self) -> int | None:
        return self._replica.high_watermark

    @property
    def log(self) -> LogSummary:
        return self._replica.log

    @property
    def control(self) -> ControlHistory:
        """Version and voters at each offset, for snapshots."""
        return self._replica.control

    @property
    def voters(self) -> VoterSet:
        return self._replica.voters

    @property
    def deadline_ms(self) -> float:
        return self.role.deadline_ms

    @property
    def epoch_start_offset(self) -> int:
        assert isinstance(self.role, Leader)
        return self.role.epoch_start_offset

    def check_upgrade(self, version: int) -> None:
        """ApiError if the version of KRaft cannot be changed to this one now."""
        self.role.check_upgrade(self._replica, version)

    def view(self) -> QuorumView:
        role = self.role
        voters = [ReplicaProgress(voter.key) for voter in self._replica.voters]
        observers: list[ReplicaProgress] = []
        if isinstance(role, Leader):
            voters = list(role.progress.voters.values())
            observers = list(role.progress.observers.values())
        return QuorumView(self.leader_id, self.epoch, self.high_watermark, voters, observers)

    # --- Events

    def start(self, election: Election, now_ms: float) -> list[Effect]:
        """Continues in the role that `quorum-state` implies."""
        assert self._role is None
        epoch = max(election.epoch, self._replica.log.last.epoch)
        if epoch > election.epoch:
            election = Election(epoch)
        kind = Kind.UNATTACHED
        if election.leader_id is not None:
            kind = Kind.RESIGNED if election.leader_id == self._replica.key.id else Kind.FOLLOWER
        assert kind in STARTS_AS
        self._role = ROLES[kind](self._replica, election, now_ms, None)
        self._replica.emit(LeaderChanged(self.leader_id, election.epoch))
        self._become(self._role.entered(self._replica, now_ms), now_ms)
        return self._take_effects()

    def step(self, event: RaftEvent, now_ms: float) -> list[Effect]:
        self._become(self._handle(event, now_ms), now_ms)
        return self._take_effects()

    def _take_effects(self) -> list[Effect]:
        effects, self._replica.effects = self._replica.effects, []
        return effects

    def _handle(self, event: RaftEvent, now_ms: float) -> Become | None:
        replica, role = self._replica, self.role
        match event:
            case Propose(count, payload):
                if not isinstance(role, Leader):
                    raise NotLeaderError
                role.append(replica, count, payload)
                return None
            case LogSynced(offset, cuts):
                replica.log.sync(offset, cuts)
                return role.synced(replica, now_ms)
            case Tick():
                return role.timed_out(replica, now_ms) if now_ms >= role.deadline_ms else None
            case Received(sender, message):
                return self._receive(sender, message, now_ms)
            case Unreachable(peer, fetch):
                return role.unreachable(replica, peer, fetch, now_ms)
            case ConnectionLost(peer):
                return role.connection_lost(replica, peer, now_ms)
            case LogCleaned(position):
                replica.log.forget_before(position)
                replica.control.forget_before(position.offset)
                return None
            case SnapshotPartFetched(position):
                role.snapshot_part_fetched(replica, position, now_ms)
                return None
            case SnapshotFetched(position, control):
                return role.snapshot_fetched(replica, position, control, now_ms)
            case SnapshotRequested(key):
                role.snapshot_requested(replica, key, now_ms)
                return None
            case ChangeVoters():
                return role.change_voters(replica, event, now_ms)
            case CheckLeadership(request_id):
                role.check_leadership(replica, request_id)
                return None
            case Resign():
                replica.stopping = True
                return role.resigns(replica)

    def _receive(self, sender: int, message: object, now_ms: float) -> Become | None:
        replica = self._replica
        match message:
            case VoteRequest():
                replica.send(sender, self._vote(message, now_ms))
            case FetchRequest():
                return self.role.fetch_requested(replica, sender, message, now_ms)
            case BeginEpoch():
                replica.send(sender, self._begin_epoch(message, now_ms))
            case EndEpoch(epoch, leader_id, successors):
                replica.send(sender, self._end_epoch(message, now_ms))
                if (self.epoch, self.role.election.leader_id) == (epoch, leader_id):
                    return self.role.leader_resigned(replica, successors, now_ms)
            case VoteAnswer(epoch, leader_id):
                self._learn(epoch, leader_id, now_ms)
                if epoch == self.epoch:
                    return self.role.vote_answered(replica, sender, message, now_ms)
            case FetchAnswer():
                return self._fetch_answered(sender, message, now_ms)
            case EpochAnswer(epoch, leader_id):
                self._learn(epoch, leader_id, now_ms)
                if epoch == self.epoch:
                    self.role.epoch_answered(replica, sender, message)
        return None

    def _vote(self, request: VoteRequest, now_ms: float) -> VoteAnswer:
        replica = self._replica
        granted, error = False, self._refusal(request.epoch, request.voter)
        if not request.is_possible:
            error = error or ErrorCode.INVALID_REQUEST
        elif request.epoch > self.epoch:
            granted = error is ErrorCode.NONE and replica.is_behind(request.last)
            voted = request.candidate if granted and not request.pre_vote else None
            self._become(Become(Kind.UNATTACHED, Election(request.epoch, voted=voted)), now_ms)
        elif error is ErrorCode.NONE:
            granted = self.role.grants(replica, request)
            if granted and not request.pre_vote and self.role.election.voted is None:
                self._become(Become(Kind.UNATTACHED, Election(self.epoch, voted=request.candidate)), now_ms)
        if granted and request.pre_vote:
            self.role.pre_vote_granted(replica, now_ms)
        return VoteAnswer(self.epoch, self.leader_id, granted, request.pre_vote, error)

    def _begin_epoch(self, message: BeginEpoch, now_ms: float) -> EpochAnswer:
        error = self._refusal(message.epoch, message.voter)
        if not self._learn(message.epoch, message.leader_id, now_ms):
            self._follow_again(Election(message.epoch, message.leader_id), now_ms)
        return EpochAnswer(self.epoch, self.leader_id, error, message.check)

    def _end_epoch(self, message: EndEpoch, now_ms: float) -> EpochAnswer:
        error = self._refusal(message.epoch, None)
        self._learn(message.epoch, message.leader_id, now_ms)
        return EpochAnswer(self.epoch, self.leader_id, error)

    def _fetch_answered(self, sender: int, answer: FetchAnswer, now_ms: float) -> Become | None:
        if self._learn(answer.epoch, answer.leader_id, now_ms):
            return None
        if sender == self.leader_id and self.kind is Kind.FOLLOWER:
            return self.role.fetch_answered(self._replica, answer, now_ms)
        if self.kind not in (Kind.FOLLOWER, Kind.UNATTACHED):
            return None
        self._follow_again(Election(answer.epoch, answer.leader_id), now_ms)
        is_unattached = self.kind is Kind.UNATTACHED
        return self.role.unreachable(self._replica, sender, answer.number, now_ms) if is_unattached else None

    def _refusal(self, epoch: int, receiver: ReplicaKey | None) -> ErrorCode:
        """The error of a request with an old epoch, or for another replica than this one."""
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        is_meant = receiver is None or receiver.matches(self._replica.key)
        return ErrorCode.NONE if is_meant else ErrorCode.INVALID_VOTER_KEY

    def _follow_again(self, election: Election, now_ms: float) -> None:
        """This replica had given up on a leader that is still alive."""
        gave_up = self.kind in (Kind.UNATTACHED, Kind.PROSPECTIVE)
        if gave_up and self.role.election == election and self.leader_id is not None:
            self._become(Become(Kind.FOLLOWER, election), now_ms)

    def _learn(self, epoch: int, leader_id: int | None, now_ms: float) -> bool:
        """Follows a newer epoch, or this epoch's leader if it was unknown; returns whether anything changed."""
        own = self.role.election
        if epoch < own.epoch or (epoch == own.epoch and (leader_id is None or own.leader_id is not None)):
            return False
        if leader_id == self._replica.key.id:
            self._epoch_said_to_lead = epoch
        can_follow = leader_id is not None and leader_id != self._replica.key.id
        self._become(Become(Kind.FOLLOWER if can_follow else Kind.UNATTACHED, Election(epoch, leader_id)), now_ms)
        return True

    def _become(self, change: Become | None, now_ms: float) -> None:
        """Changes roles until one stays. The promises of an election are checked here, and made nowhere else."""
        while change is not None:
            before = self.role
            assert change.kind in ALLOWED[before.kind], f"{before.kind.value} never becomes {change.kind.value}"
            assert before.election.may_become(change.election), f"{before.election} must not become {change.election}"
            leader_before = (self.leader_id, before.epoch)
            if change.election != before.election:
                self._replica.emit(PersistElection(change.election))
            before.left(self._replica)
            self._role = ROLES[change.kind](self._replica, change.election, now_ms, before)
            if (self.leader_id, self.epoch) != leader_before:
                self._replica.emit(LeaderChanged(self.leader_id, self.epoch))
            change = self._role.entered(self._replica, now_ms)
