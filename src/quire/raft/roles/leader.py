"""Leader: appends, answers fetches, and moves the high watermark to what a majority has on disk.

It starts its epoch with a LeaderChange record, and until that record is committed nothing is: a record of an earlier
epoch counts as committed only through a later one of this epoch (Raft 5.4.2). Its own log end counts once it is synced.
A leader that has not heard from a majority for a while steps down rather than serve a minority.
"""

from math import inf
from typing import ClassVar

from quire.raft.effects import AnswerFetch, Append, StartOfEpoch, SyncLog
from quire.raft.messages import Batch, BeginEpoch, FetchAnswer, FetchRequest, VoteRequest
from quire.raft.progress import ReplicaProgress, committed_offset
from quire.raft.quorum_state import Election
from quire.raft.replica import Replica
from quire.raft.roles.candidate import Candidate
from quire.raft.roles.role import Become, Kind, Role

OBSERVER_FORGOTTEN_AFTER_MS = 300_000


class Leader(Role):
    __slots__ = ("_announce_at_ms", "_granting", "_waiting", "epoch_start_offset", "observers", "voters")
    kind: ClassVar[Kind] = Kind.LEADER

    def __init__(self, replica: Replica, election: Election, now_ms: float, previous: Role | None) -> None:
        super().__init__(replica, election, now_ms, previous)
        assert isinstance(previous, Candidate) and previous.epoch == election.epoch
        self._granting = previous.granting
        self.epoch_start_offset = replica.log.end_offset
        self.voters = {voter.key.id: ReplicaProgress(voter.key, fetched_at_ms=now_ms) for voter in replica.voters}
        self.observers: dict[int, ReplicaProgress] = {}
        self._waiting: dict[int, tuple[FetchRequest, float]] = {}
        self._announce_at_ms = now_ms

    def entered(self, replica: Replica, now_ms: float) -> Become | None:
        payload = StartOfEpoch(replica.key.id, replica.voters, self._granting, not replica.voters_in_log)
        self.append(replica, payload.record_count, payload)
        replica.voters_in_log = True
        self._announce(replica, now_ms)
        return None

    def append(self, replica: Replica, count: int, payload: object) -> Batch:
        """Writes one batch at the end of the log and offers it to whoever waits for more."""
        base_offset = replica.log.end_offset
        batch = Batch(base_offset, base_offset + count, self.epoch, payload)
        replica.log.append(batch.epoch, batch.base_offset, batch.next_offset)
        replica.emit(Append(batch))
        replica.emit(SyncLog(batch.next_offset))
        self._answer_waiting(replica)
        return batch

    def grants(self, replica: Replica, request: VoteRequest) -> bool:
        return False

    def synced(self, replica: Replica, now_ms: float) -> Become | None:
        own = self.voters.get(replica.key.id)
        if own is not None:
            own.end_offset = replica.log.synced_offset
        self._commit(replica)
        return None

    def fetch_requested(self, replica: Replica, sender: int, request: FetchRequest, now_ms: float) -> Become | None:
        if request.epoch != self.epoch:
            return super().fetch_requested(replica, sender, request, now_ms)
        parted = self._where_logs_part(replica, request)
        if parted is not None:
            replica.send(sender, parted)
            return None
        self._note_progress(replica, request, now_ms)
        self._commit(replica)
        self._waiting[sender] = (request, now_ms + request.max_wait_ms)
        self._answer_waiting(replica, now_ms)
        self._set_deadline(replica)
        return None

    def timed_out(self, replica: Replica, now_ms: float) -> Become | None:
        if now_ms >= self._step_down_at_ms(replica):
            return Become(Kind.RESIGNED, self.election)
        if now_ms >= self._announce_at_ms:
            self._announce(replica, now_ms)
        self._answer_waiting(replica, now_ms)
        self._set_deadline(replica)
        return None

    def voters_by_progress(self, replica: Replica) -> list[int]:
        """The other voters, the longest log first: the order in which they should try to follow this leader."""
        others = [self.voters[id_] for id_ in replica.voters.others(replica.key)]
        return [each.key.id for each in sorted(others, key=lambda each: (-each.end_offset, each.key.id))]

    def _where_logs_part(self, replica: Replica, request: FetchRequest) -> FetchAnswer | None:
        """What to say to a log that is not a prefix of this one; None if it is."""
        log = replica.log
        if request.offset <= log.start.offset:
            if request.asked_at == log.start:
                return None
            return FetchAnswer(self.epoch, self.election.leader_id, request.asked_at, snapshot=log.start)
        agreed = log.end_of_epoch(request.last_epoch)
        if agreed.epoch == request.last_epoch and request.offset <= agreed.offset:
            return None
        return FetchAnswer(self.epoch, self.election.leader_id, request.asked_at, diverging=agreed)

    def _note_progress(self, replica: Replica, request: FetchRequest, now_ms: float) -> None:
        voter = self.voters.get(request.replica.id)
        if voter is not None and voter.key.matches(request.replica):
            voter.fetched(request.offset, replica.log.end_offset, now_ms)
            return
        if request.replica.id < 0:
            return
        forgotten = now_ms - OBSERVER_FORGOTTEN_AFTER_MS
        self.observers = {id_: seen for id_, seen in self.observers.items() if seen.fetched_at_ms > forgotten}
        observer = self.observers.setdefault(request.replica.id, ReplicaProgress(request.replica))
        observer.key = request.replica
        observer.fetched(request.offset, replica.log.end_offset, now_ms)

    def _commit(self, replica: Replica) -> None:
        offset = committed_offset(replica.voters, {id_: voter.end_offset for id_, voter in self.voters.items()})
        if offset > self.epoch_start_offset and replica.advance_high_watermark(offset):
            self._answer_waiting(replica)

    def _answer_waiting(self, replica: Replica, now_ms: float = -inf) -> None:
        """Answers whoever lacks records or the high watermark, or has waited long enough."""
        known = -1 if replica.high_watermark is None else replica.high_watermark
        for sender, (request, deadline_ms) in list(self._waiting.items()):
            if request.offset < replica.log.end_offset or request.high_watermark < known or now_ms >= deadline_ms:
                del self._waiting[sender]
                replica.emit(AnswerFetch(sender, request, self.epoch, known))

    def _announce(self, replica: Replica, now_ms: float) -> None:
        """Tells voters that have not fetched lately whom to fetch from."""
        silent_since = now_ms - replica.settings.fetch_timeout_ms / 2
        for id_ in replica.voters.others(replica.key):
            if self.voters[id_].end_offset < 0 or self.voters[id_].fetched_at_ms <= silent_since:
                replica.send(id_, BeginEpoch(self.epoch, replica.key.id))
        self._announce_at_ms = now_ms + replica.settings.fetch_timeout_ms / 2
        self._set_deadline(replica)

    def _step_down_at_ms(self, replica: Replica) -> float:
        """When a majority, this leader included, will have been silent for one and a half fetch timeouts."""
        heard = sorted((self.voters[id_].fetched_at_ms for id_ in replica.voters.others(replica.key)), reverse=True)
        needed = replica.voters.majority - (1 if replica.is_voter else 0)
        return heard[needed - 1] + replica.settings.fetch_timeout_ms * 1.5 if needed else inf

    def _set_deadline(self, replica: Replica) -> None:
        waiting = min((deadline_ms for _, deadline_ms in self._waiting.values()), default=inf)
        announce = self._announce_at_ms if replica.voters.others(replica.key) else inf
        self.deadline_ms = min(waiting, announce, self._step_down_at_ms(replica))
