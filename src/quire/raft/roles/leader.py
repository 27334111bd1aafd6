"""Leader: appends, answers fetches, and moves the high watermark to what a majority has on disk.

It starts its epoch with a LeaderChange record and commits nothing before that record: a record of an earlier epoch is
committed only through a later one of this epoch (Raft 5.4.2). Its own log counts up to what is synced. A leader that
has not received a fetch from a majority for a while resigns, and so does one that is no longer a voter once the
majority of the others has committed that.
"""

from math import inf
from typing import ClassVar, NamedTuple

from quire.protocol.errors import ApiError, ErrorCode
from quire.raft.control_state import Control
from quire.raft.effects import AnswerFetch, ChangeVoters, LeadershipChecked, StartOfEpoch, VotersChanged
from quire.raft.leadership_checks import LeadershipChecks
from quire.raft.messages import Batch, BeginEpoch, EpochAnswer, FetchAnswer, FetchRequest, VoteRequest
from quire.raft.progress import QuorumProgress
from quire.raft.quorum_state import Election
from quire.raft.replica import Replica
from quire.raft.replicas import ReplicaKey, Voter, VoterSet
from quire.raft.roles.candidate import Candidate
from quire.raft.roles.role import Become, Kind, Role
from quire.raft.voter_changes import AddVoter, RemoveVoter, UpdateVoter, UpgradeKraftVersion, VoterChange, control_for


class PendingChange(NamedTuple):
    request_id: int
    offset: int


class Leader(Role):
    __slots__ = (
        "_announce_at_ms",
        "_checks",
        "_granting",
        "_pending_change",
        "_reported",
        "_waiting",
        "epoch_start_offset",
        "progress",
    )
    kind: ClassVar[Kind] = Kind.LEADER

    def __init__(self, replica: Replica, election: Election, now_ms: float, previous: Role | None) -> None:
        super().__init__(replica, election, now_ms, previous)
        assert isinstance(previous, Candidate) and previous.epoch == election.epoch
        assert not replica.stopping, "a replica that resigned leads again"
        replica.elections_lost = 0
        self._granting = previous.granting
        self.epoch_start_offset = replica.log.end_offset
        self.progress = QuorumProgress(replica.key, replica.voters, now_ms)
        self._waiting: dict[int, tuple[FetchRequest, float]] = {}
        self._announce_at_ms = now_ms
        self._checks = LeadershipChecks()
        self._pending_change: PendingChange | None = None
        self._reported: dict[int, Voter] = {}
        """What the voters of a static quorum report about themselves; an upgrade of kraft.version needs it."""

    def entered(self, replica: Replica, now_ms: float) -> Become | None:
        with_voters = not replica.voters_in_log
        payload = StartOfEpoch(replica.key.id, replica.voters, self._granting, with_voters)
        control = Control(replica.control.kraft_version, replica.voters) if with_voters else None
        self.append(replica, payload.record_count, payload, control)
        self._announce(replica, now_ms)
        return None

    def left(self, replica: Replica) -> None:
        """Refuses what still waits."""
        no_leader = ErrorCode.NOT_LEADER_OR_FOLLOWER
        for sender, (request, _) in self._waiting.items():
            replica.send(sender, FetchAnswer(self.epoch, None, request.number, error=no_leader))
        if self._pending_change is not None:
            message = "The leader changed before the change was committed; the next leader may commit it"
            self._answer_change(replica, self._pending_change.request_id, ApiError(no_leader, message))
        for request_id in self._checks.take_all():
            replica.emit(LeadershipChecked(request_id, leads=False))

    def resigns(self, replica: Replica) -> Become | None:
        return Become(Kind.RESIGNED, self.election)

    def append(self, replica: Replica, count: int, payload: object, control: Control | None = None) -> Batch:
        """Appends one batch and sends it to the followers whose fetches wait."""
        base_offset = replica.log.end_offset
        batch = Batch(base_offset, base_offset + count, self.epoch, payload, control)
        replica.append(batch)
        replica.sync_log()
        self._answer_waiting(replica)
        return batch

    def grants(self, replica: Replica, request: VoteRequest) -> bool:
        return False

    def synced(self, replica: Replica, now_ms: float) -> Become | None:
        self.progress.synced(replica.log.synced_offset)
        return self._commit(replica)

    def fetch_requested(self, replica: Replica, sender: int, request: FetchRequest, now_ms: float) -> Become | None:
        if request.epoch != self.epoch:
            return super().fetch_requested(replica, sender, request, now_ms)
        self.snapshot_requested(replica, request.replica, now_ms)
        parted = self._divergence(replica, request)
        if parted is not None:
            replica.send(sender, parted)
            return None
        self.progress.fetched(request.replica, request.offset, replica.log.end_offset, now_ms)
        # A follower that waited longer would treat this leader as dead; and what a peer sends is not trusted.
        wait_ms = min(request.max_wait_ms, replica.settings.fetch_timeout_ms / 2)
        self._waiting[sender] = (request, now_ms + wait_ms)
        outcome = self._commit(replica)
        self._answer_waiting(replica, now_ms)
        self._set_deadline(replica)
        return outcome

    def snapshot_requested(self, replica: Replica, key: ReplicaKey, now_ms: float) -> None:
        self.progress.heard(key, now_ms)
        self._set_deadline(replica)

    def timed_out(self, replica: Replica, now_ms: float) -> Become | None:
        if now_ms >= self._step_down_at_ms(replica):
            return Become(Kind.RESIGNED, self.election)
        if now_ms >= self._announce_at_ms:
            self._announce(replica, now_ms)
        self._answer_waiting(replica, now_ms)
        self._set_deadline(replica)
        return None

    def voters_by_progress(self, replica: Replica) -> list[ReplicaKey]:
        """The other voters, the longest log first: the order in which they should start an election."""
        others = [self.progress.voters[id_] for id_ in replica.voters.others(replica.key)]
        return [each.key for each in sorted(others, key=lambda each: (-each.end_offset, each.key.id))]

    # --- Changes of the voters

    def change_voters(self, replica: Replica, event: ChangeVoters, now_ms: float) -> Become | None:
        try:
            control = self._control_for(replica, event.change, now_ms)
        except ApiError as error:
            self._answer_change(replica, event.request_id, error)
            return None
        if not control.record_count:
            self._answer_change(replica, event.request_id)
            return None
        batch = self.append(replica, control.record_count, control, control)
        self.progress.set_voters(replica.voters, now_ms)
        self._set_deadline(replica)
        if event.until_committed:
            self._pending_change = PendingChange(event.request_id, batch.base_offset)
        else:
            self._answer_change(replica, event.request_id)
        return self._commit(replica)

    def check_upgrade(self, replica: Replica, version: int) -> None:
        if self._control(replica, UpgradeKraftVersion(version)).record_count:
            self._check_may_change(replica)

    def _control(self, replica: Replica, change: VoterChange) -> Control:
        return control_for(change, replica.control.kraft_version, replica.voters, self._reported)

    def _control_for(self, replica: Replica, change: VoterChange, now_ms: float) -> Control:
        """The records of a change, if one may be made now."""
        control = self._control(replica, change)
        if isinstance(change, UpdateVoter):
            self._reported[change.voter.key.id] = change.voter
        if control.record_count:
            self._check_may_change(replica)
        if isinstance(change, AddVoter) and not self.progress.has_caught_up(change.voter.key, now_ms):
            raise ApiError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"Node {change.voter.key.id} has not caught up with the log; start it, and try again",
            )
        if isinstance(change, RemoveVoter) and control.voters is not None:
            self._check_majority_left(replica, change.key.id, control.voters, now_ms)
        return control

    def _check_majority_left(self, replica: Replica, removed: int, left: VoterSet, now_ms: float) -> None:
        """Without a majority of those that are left, the removal is not committed, and nothing else ever after."""
        if self.progress.majority_heard_at_ms(left) < now_ms - replica.settings.fetch_timeout_ms:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Without node {removed}, most voters would be down; start them, or remove them first",
            )

    def _check_may_change(self, replica: Replica) -> None:
        """A change waits for a commit of this epoch and for the change before it: else majorities could be disjoint."""
        if not self._has_committed(replica):
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "The leader has not committed a record in its epoch yet")
        if (replica.high_watermark or 0) <= replica.control.latest_offset:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "The previous change of the voters is not committed yet")

    def _answer_change(self, replica: Replica, request_id: int, error: ApiError | None = None) -> None:
        code, message = (ErrorCode.NONE, "") if error is None else (error.code, error.message)
        replica.emit(VotersChanged(request_id, code, message))

    def _has_committed(self, replica: Replica) -> bool:
        """Whether a record of this epoch is committed: only then is all that earlier leaders committed known to be."""
        return replica.high_watermark is not None and replica.high_watermark > self.epoch_start_offset

    # --- Whether it still leads

    def check_leadership(self, replica: Replica, request_id: int) -> None:
        if not self._has_committed(replica):
            super().check_leadership(replica, request_id)
            return
        self._checks.add(request_id)
        self._continue_checks(replica)

    def epoch_answered(self, replica: Replica, sender: int, answer: EpochAnswer) -> None:
        if answer.error is ErrorCode.NONE:
            self._checks.confirm(sender, answer.check)
            self._continue_checks(replica)

    def _continue_checks(self, replica: Replica) -> None:
        for request_id in self._checks.take_confirmed(replica.voters, replica.key):
            replica.emit(LeadershipChecked(request_id, leads=True))
        if self._checks.begin_round():
            for voter in replica.voters.other_keys(replica.key):
                self._announce_to(replica, voter)
            self._continue_checks(replica)  # The only voter needs no answers.

    # --- Fetches

    def _divergence(self, replica: Replica, request: FetchRequest) -> FetchAnswer | None:
        """The response to a follower whose log is not a prefix of this one; None if it is."""
        log = replica.log
        if request.asked_at == log.start:
            return None
        if request.offset <= log.start.offset or request.last_epoch < log.start.epoch:
            # The epochs before the snapshot's are no longer known, so there is no offset to truncate to.
            return FetchAnswer(self.epoch, self.election.leader_id, request.number, snapshot=log.start)
        agreed = log.end_of_epoch(request.last_epoch)
        if agreed.epoch == request.last_epoch and request.offset <= agreed.offset:
            return None
        return FetchAnswer(self.epoch, self.election.leader_id, request.number, diverging=agreed)

    def _commit(self, replica: Replica) -> Become | None:
        offset = self.progress.committed_offset(replica.voters)
        if offset <= self.epoch_start_offset or not replica.advance_high_watermark(offset):
            return None
        self._answer_waiting(replica)
        if self._pending_change is not None and self._pending_change.offset < offset:
            self._answer_change(replica, self._pending_change.request_id)
            self._pending_change = None
        was_removed = not replica.is_voter and replica.control.latest_offset < offset
        return Become(Kind.RESIGNED, self.election) if was_removed else None

    def _answer_waiting(self, replica: Replica, now_ms: float = -inf) -> None:
        """Answers waiting fetches that lack records or the high watermark, or have waited long enough."""
        known = -1 if replica.high_watermark is None else replica.high_watermark
        for sender, (request, deadline_ms) in list(self._waiting.items()):
            if request.offset < replica.log.end_offset or request.high_watermark < known or now_ms >= deadline_ms:
                del self._waiting[sender]
                replica.emit(AnswerFetch(sender, request, self.epoch, known))

    # --- Times

    def _announce(self, replica: Replica, now_ms: float) -> None:
        """Announces this leader to voters that have not fetched lately, or have not answered a check."""
        silent_since = now_ms - replica.settings.fetch_timeout_ms / 2
        for id_ in replica.voters.others(replica.key):
            voter = self.progress.voters[id_]
            if voter.end_offset < 0 or voter.heard_at_ms <= silent_since or self._checks.lacks(id_):
                self._announce_to(replica, voter.key)
        self._announce_at_ms = now_ms + replica.settings.fetch_timeout_ms / 2
        self._set_deadline(replica)

    def _announce_to(self, replica: Replica, voter: ReplicaKey) -> None:
        replica.send(voter.id, BeginEpoch(self.epoch, replica.key.id, voter, self._checks.number))

    def _step_down_at_ms(self, replica: Replica) -> float:
        """When the last fetches of a majority, this leader included, will be one and a half fetch timeouts old."""
        return self.progress.majority_heard_at_ms(replica.voters) + replica.settings.fetch_timeout_ms * 1.5

    def _set_deadline(self, replica: Replica) -> None:
        waiting = min((deadline_ms for _, deadline_ms in self._waiting.values()), default=inf)
        announce = self._announce_at_ms if replica.voters.others(replica.key) else inf
        self.deadline_ms = min(waiting, announce, self._step_down_at_ms(replica))
