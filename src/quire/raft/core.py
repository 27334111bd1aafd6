"""The consensus state machine: an event and the time in, effects out; no clock, file or socket of its own.

`RaftCore` compares epochs, moves between roles and hands everything else to the role at hand. Whoever drives it calls
`start` once, then `step` with whatever happened, carries out the effects in order, and calls `step(Tick())` when
`deadline_ms` has come. The rules it keeps, whatever arrives:

- one vote and one leader per epoch, on disk before anyone hears of them;
- a leader's log is only appended to, and holds everything committed before it;
- the high watermark never moves back, and covers only what a majority has on disk.
"""

from typing import NamedTuple

from quire.raft.effects import (
    Effect,
    Event,
    LeaderChanged,
    LogCleaned,
    LogSynced,
    PersistElection,
    Propose,
    Received,
    Resign,
    SnapshotInstalled,
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
    """The quorum as this replica sees it; the progress of others is known to the leader alone."""

    leader_id: int | None
    epoch: int
    high_watermark: int | None
    voters: list[ReplicaProgress]
    observers: list[ReplicaProgress]


class RaftCore:
    __slots__ = ("_replica", "_role")

    def __init__(
        self,
        key: ReplicaKey,
        voters: VoterSet,
        log: LogSummary,
        random: Random,
        settings: QuorumSettings | None = None,
        *,
        voters_in_log: bool = True,
    ) -> None:
        self._replica = Replica(key, voters, log, random, settings or QuorumSettings(), voters_in_log=voters_in_log)
        self._role: Role | None = None

    # --- what it is now

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
        """Whom this replica takes for the leader; a leader that restarted or resigned no longer counts."""
        leader_id = self.role.election.leader_id
        return None if leader_id == self._replica.key.id and self.kind is not Kind.LEADER else leader_id

    @property
    def is_leader(self) -> bool:
        return self._role is not None and self._role.kind is Kind.LEADER

    @property
    def high_watermark(self) -> int | None:
        return self._replica.high_watermark

    @property
    def log(self) -> LogSummary:
        return self._replica.log

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

    def view(self) -> QuorumView:
        role = self.role
        voters = [ReplicaProgress(voter.key) for voter in self._replica.voters]
        observers: list[ReplicaProgress] = []
        if isinstance(role, Leader):
            voters = list(role.voters.values())
            observers = list(role.observers.values())
        return QuorumView(self.leader_id, self.epoch, self.high_watermark, voters, observers)

    # --- what happens

    def start(self, election: Election, now_ms: float) -> list[Effect]:
        """Takes up where `quorum-state` says this replica left off."""
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

    def step(self, event: Event, now_ms: float) -> list[Effect]:
        self._become(self._handle(event, now_ms), now_ms)
        return self._take_effects()

    def _take_effects(self) -> list[Effect]:
        effects, self._replica.effects = self._replica.effects, []
        return effects

    def _handle(self, event: Event, now_ms: float) -> Become | None:
        replica, role = self._replica, self.role
        match event:
            case Propose(count, payload):
                if not isinstance(role, Leader):
                    raise NotLeaderError
                role.append(replica, count, payload)
                return None
            case LogSynced(offset):
                replica.log.sync(offset)
                return role.synced(replica, now_ms)
            case Tick():
                return role.timed_out(replica, now_ms) if now_ms >= role.deadline_ms else None
            case Received(sender, message):
                return self._receive(sender, message, now_ms)
            case Unreachable(peer):
                return role.unreachable(replica, peer, now_ms)
            case LogCleaned(position):
                replica.log.forget_before(position)
                return None
            case SnapshotInstalled(position):
                replica.log.restart_at(position)
                return role.snapshot_installed(replica, now_ms)
            case Resign():
                replica.stopping = True
                return Become(Kind.RESIGNED, role.election) if role.kind is Kind.LEADER else None

    def _receive(self, sender: int, message: object, now_ms: float) -> Become | None:
        replica = self._replica
        match message:
            case VoteRequest():
                self._vote(sender, message, now_ms)
            case FetchRequest():
                return self.role.fetch_requested(replica, sender, message, now_ms)
            case BeginEpoch(epoch, leader_id):
                self._learn(epoch, leader_id, now_ms)
                if self.role.election == Election(epoch, leader_id) and self.kind in (
                    Kind.UNATTACHED,
                    Kind.PROSPECTIVE,
                ):
                    # It had given this leader up, and here it is.
                    self._become(Become(Kind.FOLLOWER, self.role.election), now_ms)
                replica.send(sender, EpochAnswer(self.epoch, self.role.election.leader_id))
            case EndEpoch(epoch, leader_id, successors):
                self._learn(epoch, leader_id, now_ms)
                replica.send(sender, EpochAnswer(self.epoch, self.role.election.leader_id))
                if (self.epoch, self.role.election.leader_id) == (epoch, leader_id):
                    return self.role.leader_resigned(replica, successors, now_ms)
            case VoteAnswer(epoch, leader_id):
                self._learn(epoch, leader_id, now_ms)
                if epoch == self.epoch:
                    return self.role.vote_answered(replica, sender, message, now_ms)
            case FetchAnswer(epoch, leader_id):
                is_news = self._learn(epoch, leader_id, now_ms)
                if epoch == self.epoch and not is_news and sender == self.role.election.leader_id:
                    return self.role.fetch_answered(replica, message, now_ms)
            case EpochAnswer(epoch, leader_id):
                self._learn(epoch, leader_id, now_ms)
        return None

    def _vote(self, sender: int, request: VoteRequest, now_ms: float) -> None:
        replica = self._replica
        granted = False
        if request.epoch > self.epoch:
            granted = replica.is_behind(request.last)
            voted = request.candidate if granted and not request.pre_vote else None
            self._become(Become(Kind.UNATTACHED, Election(request.epoch, voted=voted)), now_ms)
        elif request.epoch == self.epoch:
            granted = self.role.grants(replica, request)
            if granted and not request.pre_vote and self.role.election.voted is None:
                self._become(Become(Kind.UNATTACHED, Election(self.epoch, voted=request.candidate)), now_ms)
        replica.send(sender, VoteAnswer(self.epoch, self.role.election.leader_id, granted, request.pre_vote))

    def _learn(self, epoch: int, leader_id: int | None, now_ms: float) -> bool:
        """Follows a newer epoch, or this epoch's leader when it was not known; True if either was news."""
        own = self.role.election
        if epoch < own.epoch or (epoch == own.epoch and (leader_id is None or own.leader_id is not None)):
            return False
        can_follow = leader_id is not None and leader_id != self._replica.key.id
        self._become(Become(Kind.FOLLOWER if can_follow else Kind.UNATTACHED, Election(epoch, leader_id)), now_ms)
        return True

    def _become(self, wish: Become | None, now_ms: float) -> None:
        """Changes roles until one wants to stay. Promises are checked here, and nowhere else made."""
        while wish is not None:
            before = self.role
            assert wish.kind in ALLOWED[before.kind], f"{before.kind.value} never becomes {wish.kind.value}"
            assert before.election.may_become(wish.election), f"{before.election} must not become {wish.election}"
            leader_before = (self.leader_id, before.epoch)
            if wish.election != before.election:
                self._replica.emit(PersistElection(wish.election))
            self._role = ROLES[wish.kind](self._replica, wish.election, now_ms, before)
            if (self.leader_id, self.epoch) != leader_before:
                self._replica.emit(LeaderChanged(self.leader_id, self.epoch))
            wish = self._role.entered(self._replica, now_ms)
