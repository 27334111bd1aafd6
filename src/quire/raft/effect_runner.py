"""Carries out one effect of the consensus core: on the log and its files, towards other replicas, or for a caller.

`EffectQueue` decides when: in order, and not before there is room on the disk. An effect here is done when the method
returns, except for the sync of the log and the fetch of a snapshot, which take a job and report to the core later.
"""

import logging
from collections.abc import Callable

from quire.protocol.errors import ApiError
from quire.raft.core import RaftCore
from quire.raft.delivery import Delivery
from quire.raft.effects import (
    AnswerFetch,
    Append,
    Effect,
    FetchSnapshot,
    HighWatermark,
    LeaderChanged,
    LeadershipChecked,
    PersistElection,
    RestartLog,
    Send,
    SyncLog,
    Truncate,
    VotersChanged,
)
from quire.raft.inbox import Inbox, Reply
from quire.raft.log_listener import ReportedLeader
from quire.raft.log_store import LogStore
from quire.raft.log_summary import LogPosition
from quire.raft.messages import Batch, FetchAnswer, Message
from quire.raft.outbox import Outbox
from quire.raft.pending_answers import PendingAnswers
from quire.raft.snapshot_fetch import SnapshotFetch
from quire.raft.wire.fetch import BYTES_MAX as FETCH_BYTES_MAX
from quire.raft.written_batches import encode_written
from quire.seams import Clock

log = logging.getLogger("quire.raft")


class EffectRunner:
    __slots__ = (
        "_clock",
        "_core",
        "_delivery",
        "_inbox",
        "_node_id",
        "_outbox",
        "_reported_leader",
        "_snapshot_fetch",
        "_store",
        "_synced",
        "leadership_checks",
        "voter_changes",
    )

    def __init__(
        self,
        node_id: int,
        clock: Clock,
        store: LogStore,
        *,
        core: Callable[[], RaftCore],
        synced: Callable[[int, int], None],
        delivery: Delivery,
        inbox: Inbox,
        outbox: Outbox,
        snapshot_fetch: SnapshotFetch,
        reported_leader: ReportedLeader,
    ) -> None:
        """`synced` is called with the offset up to which the log is durable, and the `cuts` of the effect."""
        self.voter_changes: PendingAnswers[ApiError] = PendingAnswers()
        """Callers that wait for a change of the voters."""
        self.leadership_checks: PendingAnswers[bool] = PendingAnswers()
        """Callers that wait for a majority to confirm the leadership."""
        self._node_id = node_id
        self._clock = clock
        self._store = store
        self._core = core
        self._synced = synced
        self._delivery = delivery
        self._inbox = inbox
        self._outbox = outbox
        self._snapshot_fetch = snapshot_fetch
        self._reported_leader = reported_leader

    def carry_out(self, effect: Effect) -> None:
        """May raise OSError or MetadataLogError."""
        match effect:
            case Append(batch):
                self._append(batch)
            case PersistElection(election):
                self._store.write_election(election, self._core().voters)
            case SyncLog(_, cuts):
                self._store.sync(lambda offset: self._synced(offset, cuts))
            case HighWatermark(offset):
                self._delivery.committed(offset)
            case LeaderChanged(leader_id, epoch):
                self._leader_changed(leader_id, epoch)
            case Truncate(offset):
                self._store.truncate(offset)
            case Send(to, message):
                self._send(to, message)
            case AnswerFetch(to, request, epoch, high_watermark):
                batches = self._store.read_batches(request.offset, FETCH_BYTES_MAX)
                answer = FetchAnswer(epoch, self._node_id, request.number, high_watermark, batches=batches)
                self._inbox.answer(to, answer)
            case FetchSnapshot(leader_id, position):
                self._snapshot_fetch.start(leader_id, position, self._core().epoch)
            case RestartLog(position):
                self._restart(position)
            case VotersChanged(request_id, error, message):
                self.voter_changes.answer(request_id, ApiError(error, message))
            case LeadershipChecked(request_id, leads):
                self.leadership_checks.answer(request_id, leads)

    def _append(self, batch: Batch) -> None:
        now_ms = self._clock.now_ms()
        if isinstance(batch.payload, bytes):
            self._store.append(batch.payload, now_ms)
            return
        encoded, written = encode_written(batch, self._store.control.kraft_version, now_ms)
        self._store.append(encoded, written.timestamp_ms)
        self._delivery.wrote(written)

    def _leader_changed(self, leader_id: int | None, epoch: int) -> None:
        log.debug("metadata leader leader=%s epoch=%d", leader_id, epoch)
        if leader_id != self._node_id:
            self._delivery.forget_written()
            self._reported_leader.report(leader_id, epoch)

    def _send(self, to: int, message: Message) -> None:
        if self._inbox.holds(to):
            assert isinstance(message, Reply)
            self._inbox.answer(to, message)
        else:
            self._outbox.send(to, message)

    def _restart(self, position: LogPosition) -> None:
        """The fetched snapshot replaces the log. It is on disk, so a crash leaves either."""
        replace_state = self._snapshot_fetch.take(position)
        self._store.restart_at(position)
        self._delivery.restart_at(position.offset)
        replace_state()
        log.info("metadata log restarted end_offset=%d epoch=%d", position.offset, position.epoch)
