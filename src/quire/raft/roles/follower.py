"""Follower: fetches the leader's log, and truncates its own where the two differ.

A fetch tells the leader how far this log is on disk, and the leader counts that towards the majority at once. So the
next fetch is sent only when the records of the previous one, or the cut that it led to, are synced.
"""

from collections.abc import Iterable
from enum import Enum
from math import inf
from typing import ClassVar

from quire.protocol.errors import ErrorCode
from quire.raft.control_state import ControlState
from quire.raft.effects import FetchSnapshot
from quire.raft.log_summary import LogPosition
from quire.raft.messages import Batch, FetchAnswer, FetchRequest, VoteRequest
from quire.raft.quorum_state import Election
from quire.raft.replica import Replica
from quire.raft.replicas import ReplicaKey
from quire.raft.roles.role import Become, Kind, Role

DOUBT_MS = 100
"""How long a voter that does not reach its leader tries, if it never did; up to twice as long, at random."""


class Awaits(Enum):
    """What the next fetch waits for. Answers to earlier ones, of this role or of one before it, do not count."""

    ANSWER = "answer"
    SYNC = "sync"
    SNAPSHOT = "snapshot"
    RETRY = "retry"


class Follower(Role):
    __slots__ = ("_awaits", "_fetch_at_ms", "_give_up_at_ms", "_has_fetched", "_leader_id", "_number", "_wanted")
    kind: ClassVar[Kind] = Kind.FOLLOWER

    def __init__(self, replica: Replica, election: Election, now_ms: float, previous: Role | None) -> None:
        super().__init__(replica, election, now_ms, previous)
        assert election.leader_id is not None and election.leader_id != replica.key.id
        self._leader_id = election.leader_id
        self._has_fetched = False
        self._wanted: LogPosition | None = None
        """The snapshot that the leader named; this role replaces the log by no other."""
        self._awaits = Awaits.SYNC
        self._number = 0
        """Of the last fetch."""
        self._fetch_at_ms = inf
        self._give_up_at_ms = now_ms + replica.settings.fetch_timeout_ms
        self._set_deadline()

    def entered(self, replica: Replica, now_ms: float) -> Become | None:
        # What an earlier leader sent may not be synced yet.
        return self.synced(replica, now_ms)

    def grants(self, replica: Replica, request: VoteRequest) -> bool:
        # A leader that answers must not be replaced because another voter cannot reach it.
        return request.pre_vote and not self._has_fetched and super().grants(replica, request)

    def fetch_answered(self, replica: Replica, answer: FetchAnswer, now_ms: float) -> Become | None:
        if not self._awaits_answer(answer.number):
            return None
        if answer.error is not ErrorCode.NONE or answer.epoch < self.epoch:
            # It no longer leads this epoch, or does not know yet that it does.
            self._has_fetched = False
            return self._not_fetched(replica, now_ms)
        self._has_fetched = True
        replica.elections_lost = 0
        self._heard(replica, now_ms)
        if answer.snapshot is not None:
            self._want(replica, answer.snapshot, now_ms)
        elif answer.diverging is not None:
            self._truncate(replica, answer.diverging, now_ms)
        else:
            self._take(replica, answer, now_ms)
        return None

    def synced(self, replica: Replica, now_ms: float) -> Become | None:
        if self._awaits is Awaits.SYNC and replica.log.is_synced:
            self._fetch(replica)
        return None

    def snapshot_part_fetched(self, replica: Replica, position: LogPosition, now_ms: float) -> None:
        if position == self._wanted:
            self._heard(replica, now_ms)

    def snapshot_fetched(
        self, replica: Replica, position: LogPosition, control: ControlState, now_ms: float
    ) -> Become | None:
        # The log may have changed since the snapshot was asked for, even under the same leader.
        if position == self._wanted and self._awaits is Awaits.SNAPSHOT and _is_ahead(position, replica):
            replica.restart_at(position, control)
            self._heard(replica, now_ms)
            self._awaits = Awaits.SYNC
        return None

    def unreachable(self, replica: Replica, peer: int, fetch: int | None, now_ms: float) -> Become | None:
        is_snapshot = fetch is None and self._awaits is Awaits.SNAPSHOT
        if peer != self._leader_id or not (is_snapshot or self._awaits_answer(fetch)):
            return None
        return self._not_fetched(replica, now_ms)

    def _awaits_answer(self, number: int | None) -> bool:
        return self._awaits is Awaits.ANSWER and number == self._number

    def _not_fetched(self, replica: Replica, now_ms: float) -> Become | None:
        if not replica.may_campaign:
            # Another replica knows the next leader, if there is one.
            return Become(Kind.UNATTACHED, self.election)
        self._retry_later(replica, now_ms)
        if not self._has_fetched:
            self._give_up_by(now_ms + DOUBT_MS + replica.random.below(DOUBT_MS))
        return None

    def connection_lost(self, replica: Replica, peer: int, now_ms: float) -> Become | None:
        if peer == self._leader_id:
            self._has_fetched = False
            self._give_up_by(now_ms + replica.quick_election_jitter_ms())
        return None

    def leader_resigned(self, replica: Replica, successors: tuple[ReplicaKey, ...], now_ms: float) -> Become | None:
        """The preferred successor starts an election at once; the others wait longer the further down they are."""
        rank = next((i for i, key in enumerate(successors) if key.matches(replica.key)), len(successors))
        self._has_fetched = False
        self._give_up_by(now_ms + min(rank, 5) * replica.settings.election_backoff_max_ms // 5)
        return self.timed_out(replica, now_ms)

    def timed_out(self, replica: Replica, now_ms: float) -> Become | None:
        if now_ms >= self._give_up_at_ms:
            return Become(Kind.PROSPECTIVE if replica.may_campaign else Kind.UNATTACHED, self.election)
        if now_ms >= self._fetch_at_ms:
            self._fetch(replica)
        return None

    def _fetch(self, replica: Replica) -> None:
        self._awaits = Awaits.ANSWER
        self._wanted = None
        self._fetch_at_ms = inf
        self._set_deadline()
        last = replica.log.last
        known = -1 if replica.high_watermark is None else replica.high_watermark
        wait_ms = replica.settings.fetch_max_wait_ms
        self._number = replica.next_fetch_number()
        request = FetchRequest(self.epoch, replica.key, last.offset, last.epoch, known, wait_ms, self._number)
        replica.send(self._leader_id, request)

    def _retry_later(self, replica: Replica, now_ms: float) -> None:
        self._awaits = Awaits.RETRY
        self._fetch_at_ms = now_ms + replica.settings.retry_backoff_ms
        self._set_deadline()

    def _take(self, replica: Replica, answer: FetchAnswer, now_ms: float) -> None:
        if not _continue(replica.log.last, answer.batches, self.epoch):
            self._retry_later(replica, now_ms)
            return
        for batch in answer.batches:
            replica.append(batch)
        if answer.high_watermark >= 0:
            replica.advance_high_watermark(min(answer.high_watermark, replica.log.end_offset))
        if answer.batches:
            self._awaits = Awaits.SYNC
            replica.sync_log()
        else:
            self._fetch(replica)

    def _want(self, replica: Replica, snapshot: LogPosition, now_ms: float) -> None:
        if not _is_ahead(snapshot, replica):
            self._retry_later(replica, now_ms)
            return
        self._awaits = Awaits.SNAPSHOT
        self._wanted = snapshot
        replica.emit(FetchSnapshot(self._leader_id, snapshot))

    def _truncate(self, replica: Replica, agreed: LogPosition, now_ms: float) -> None:
        """Keeps what both logs agree on: not past the leader's end of that epoch, nor past this log's."""
        ours = replica.log.end_of_epoch(agreed.epoch)
        offset = min(ours.offset, agreed.offset) if ours.epoch == agreed.epoch else ours.offset
        offset = max(offset, replica.log.start.offset)
        if offset == replica.log.end_offset:
            # Nothing to truncate, so the next answer would be the same.
            self._retry_later(replica, now_ms)
            return
        replica.truncate(offset)
        self._awaits = Awaits.SYNC

    def _heard(self, replica: Replica, now_ms: float) -> None:
        self._give_up_at_ms = now_ms + replica.settings.fetch_timeout_ms
        self._set_deadline()

    def _give_up_by(self, at_ms: float) -> None:
        self._give_up_at_ms = min(self._give_up_at_ms, at_ms)
        self._set_deadline()

    def _set_deadline(self) -> None:
        self.deadline_ms = min(self._fetch_at_ms, self._give_up_at_ms)


def _is_ahead(snapshot: LogPosition, replica: Replica) -> bool:
    """Whether a snapshot has more than what this replica knows to be committed."""
    return replica.high_watermark is None or snapshot.offset > replica.high_watermark


def _continue(end: LogPosition, batches: Iterable[Batch], epoch: int) -> bool:
    """Whether batches continue a log without a gap. Data from another node is not trusted."""
    for batch in batches:
        if batch.base_offset != end.offset or batch.next_offset <= end.offset or not end.epoch <= batch.epoch <= epoch:
            return False
        end = LogPosition(batch.epoch, batch.next_offset)
    return True
