"""Follower: fetches the leader's log, and cuts its own where the two differ.

A fetch tells the leader how far this log is on disk, so the next one goes out only when what the last one brought has
been synced: the leader counts it towards the majority at once.
"""

from enum import Enum
from math import inf
from typing import ClassVar

from quire.raft.effects import Append, InstallSnapshot, SyncLog, Truncate
from quire.raft.log_summary import LogPosition
from quire.raft.messages import FetchAnswer, FetchRequest, VoteRequest
from quire.raft.quorum_state import Election
from quire.raft.replica import Replica
from quire.raft.roles.role import Become, Kind, Role


class Awaits(Enum):
    """What has to happen before the next fetch: there is never more than one on its way."""

    ANSWER = "answer"
    SYNC = "sync"
    SNAPSHOT = "snapshot"
    RETRY = "retry"


class Follower(Role):
    __slots__ = ("_awaits", "_fetch_at_ms", "_give_up_at_ms", "_has_fetched", "_leader_id")
    kind: ClassVar[Kind] = Kind.FOLLOWER

    def __init__(self, replica: Replica, election: Election, now_ms: float, previous: Role | None) -> None:
        super().__init__(replica, election, now_ms, previous)
        assert election.leader_id is not None and election.leader_id != replica.key.id
        self._leader_id = election.leader_id
        self._has_fetched = False
        self._awaits = Awaits.SYNC
        self._fetch_at_ms = inf
        self._give_up_at_ms = now_ms + replica.settings.fetch_timeout_ms
        self._set_deadline()

    def entered(self, replica: Replica, now_ms: float) -> Become | None:
        # What an earlier leader sent may still be on its way to the disk.
        return self.synced(replica, now_ms)

    def grants(self, replica: Replica, request: VoteRequest) -> bool:
        # A leader that answers must not be voted out by somebody who merely cannot reach it.
        return request.pre_vote and not self._has_fetched and super().grants(replica, request)

    def fetch_answered(self, replica: Replica, answer: FetchAnswer, now_ms: float) -> Become | None:
        if self._awaits is not Awaits.ANSWER or answer.asked_at != replica.log.last:
            return None
        if answer.fenced:
            self._retry_later(replica, now_ms)
            return None
        self._has_fetched = True
        self._give_up_at_ms = now_ms + replica.settings.fetch_timeout_ms
        self._set_deadline()
        if answer.snapshot is not None:
            self._awaits = Awaits.SNAPSHOT
            replica.emit(InstallSnapshot(self._leader_id, answer.snapshot))
        elif answer.diverging is not None:
            self._truncate(replica, answer.diverging)
            self._fetch(replica)
        else:
            self._take(replica, answer)
        return None

    def synced(self, replica: Replica, now_ms: float) -> Become | None:
        if self._awaits is Awaits.SYNC and replica.log.synced_offset == replica.log.end_offset:
            self._fetch(replica)
        return None

    def snapshot_installed(self, replica: Replica, now_ms: float) -> Become | None:
        replica.advance_high_watermark(replica.log.end_offset)
        self._give_up_at_ms = now_ms + replica.settings.fetch_timeout_ms
        self._fetch(replica)
        return None

    def unreachable(self, replica: Replica, peer: int, now_ms: float) -> Become | None:
        if peer == self._leader_id and self._awaits in (Awaits.ANSWER, Awaits.SNAPSHOT):
            self._retry_later(replica, now_ms)
        return None

    def leader_resigned(self, replica: Replica, successors: tuple[int, ...], now_ms: float) -> Become | None:
        """The best placed successor runs at once, the others give it a head start that grows with their place."""
        place = successors.index(replica.key.id) if replica.key.id in successors else len(successors)
        self._give_up_at_ms = now_ms + min(place, 5) * replica.settings.election_backoff_max_ms // 5
        self._set_deadline()
        return self.timed_out(replica, now_ms)

    def timed_out(self, replica: Replica, now_ms: float) -> Become | None:
        if now_ms >= self._give_up_at_ms:
            return Become(Kind.PROSPECTIVE if replica.is_voter else Kind.UNATTACHED, self.election)
        if now_ms >= self._fetch_at_ms:
            self._fetch(replica)
        return None

    def _fetch(self, replica: Replica) -> None:
        self._awaits = Awaits.ANSWER
        self._fetch_at_ms = inf
        self._set_deadline()
        last = replica.log.last
        known = -1 if replica.high_watermark is None else replica.high_watermark
        wait_ms = replica.settings.fetch_max_wait_ms
        request = FetchRequest(self.epoch, replica.key, last.offset, last.epoch, known, wait_ms)
        replica.send(self._leader_id, request)

    def _retry_later(self, replica: Replica, now_ms: float) -> None:
        self._awaits = Awaits.RETRY
        self._fetch_at_ms = now_ms + replica.settings.retry_backoff_ms
        self._set_deadline()

    def _take(self, replica: Replica, answer: FetchAnswer) -> None:
        for batch in answer.batches:
            replica.log.append(batch.epoch, batch.base_offset, batch.next_offset)
            replica.emit(Append(batch))
        if answer.high_watermark >= 0:
            replica.advance_high_watermark(min(answer.high_watermark, replica.log.end_offset))
        if answer.batches:
            self._awaits = Awaits.SYNC
            replica.emit(SyncLog(replica.log.end_offset))
        else:
            self._fetch(replica)

    def _truncate(self, replica: Replica, agreed: LogPosition) -> None:
        """Keeps what both logs agree on: not past the leader's end of that epoch, nor past this log's."""
        ours = replica.log.end_of_epoch(agreed.epoch)
        offset = min(ours.offset, agreed.offset) if ours.epoch == agreed.epoch else ours.offset
        offset = max(offset, replica.log.start.offset)
        assert replica.high_watermark is None or offset >= replica.high_watermark, "what is committed is never cut"
        replica.log.truncate(offset)
        replica.emit(Truncate(offset))

    def _set_deadline(self) -> None:
        self.deadline_ms = min(self._fetch_at_ms, self._give_up_at_ms)
