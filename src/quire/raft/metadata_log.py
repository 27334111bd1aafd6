"""The metadata log of one node: the consensus core, its folder on disk, and whoever listens to what is committed.

`MetadataLog` drives `RaftCore`: it carries out its effects in order, brings the log to disk through a job, and fires
its timer. To those above it is an ordered log: `append` puts records into it as one atomic batch and returns their
offset at once; the listener hears of every batch when it is committed, of leadership when everything before it has been
heard, and is asked for a snapshot when one is due. Appends made while the disk is busy share its next sync, which is
all the batching a metadata log needs.

A failure of the disk, or a record this node does not understand, is the end: `failed` is called once and nothing is
committed after it.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import NamedTuple, Protocol

from quire.protocol.records import Record, build_batch
from quire.protocol.schema import Message
from quire.raft import snapshot_file
from quire.raft.control_batches import start_of_epoch
from quire.raft.core import QuorumView, RaftCore
from quire.raft.effects import (
    Append,
    Effect,
    Event,
    HighWatermark,
    LeaderChanged,
    LogCleaned,
    LogSynced,
    PersistElection,
    Propose,
    Resign,
    StartOfEpoch,
    SyncLog,
    Tick,
    Truncate,
)
from quire.raft.errors import MetadataLogError
from quire.raft.log_store import CommittedBatch, LogStore
from quire.raft.log_summary import LogPosition
from quire.raft.messages import Batch
from quire.raft.record_frame import encode_frame
from quire.raft.replicas import ReplicaKey, VoterSet
from quire.raft.settings import MetadataLogSettings
from quire.seams import Clock, Disk, Jobs, Random, Timer
from quire.storage.errors import is_full

log = logging.getLogger("quire.raft")

VersionedRecord = tuple[Message, int]
"""A metadata record and the version it is to be written in."""


class SnapshotContent(NamedTuple):
    """The state up to and including `last_offset`; `records` is read in another thread and must not change."""

    last_offset: int
    epoch: int
    timestamp_ms: int
    records: Iterable[VersionedRecord]


ROOM_CHECK_MS = 1_000.0
SNAPSHOT_RETRY_MS = 60_000.0


class LogListener(Protocol):
    """Whoever keeps state from the log. Called on the event loop, in the order of the log."""

    def snapshot_loaded(self, records: Sequence[Message], last_offset: int, epoch: int, timestamp_ms: int) -> None:
        """The log goes on after `last_offset`; what was before it is in `records`."""
        ...

    def committed(self, batches: Sequence[CommittedBatch]) -> None: ...

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        """Of this node's own leadership only once everything committed before it was told."""
        ...

    def snapshot_content(self) -> SnapshotContent | None:
        """The state as of the last batch told; None if it cannot be had in the middle of a transaction."""
        ...


class _Proposal(NamedTuple):
    records: Sequence[VersionedRecord]
    timestamp_ms: int


class MetadataLog:
    def __init__(
        self,
        directory: str,
        key: ReplicaKey,
        listener: LogListener,
        *,
        clock: Clock,
        random: Random,
        disk: Disk,
        jobs: Jobs,
        failed: Callable[[Exception], None],
        settings: MetadataLogSettings | None = None,
        static_voters: VoterSet | None = None,
    ) -> None:
        """`static_voters` are those of `controller.quorum.voters`, for a log that names none."""
        self._key = key
        self._listener = listener
        self._clock = clock
        self._random = random
        self._failed = failed
        self._settings = settings or MetadataLogSettings()
        self._static_voters = static_voters
        self._directory = directory
        self._store = LogStore(disk, jobs, directory, self._settings, self._not_synced)
        self._core: RaftCore | None = None
        self._effects: deque[Effect] = deque()
        self._running = False
        self._stopped = False
        self._timer: Timer | None = None
        self._uncommitted: deque[CommittedBatch] = deque()
        self._told_offset = 0
        self._told_leader: tuple[int | None, int] = (None, -1)
        self._bytes_since_snapshot = 0
        self._snapshot_timer: Timer | None = None
        self._writing_snapshot = False
        self._room_timer: Timer | None = None
        """Set while what has to be written waits for room on the disk."""
        self._told_of_no_room = False

    # --- what it is now

    @property
    def is_leader(self) -> bool:
        """Whether appends are taken: this node leads and its listener has heard of it."""
        return not self._stopped and self._told_leader == (self._key.id, self._raft.epoch)

    @property
    def leader_id(self) -> int | None:
        return self._raft.leader_id

    @property
    def epoch(self) -> int:
        return self._raft.epoch

    @property
    def high_watermark(self) -> int:
        """Everything below is committed and told; 0 before the first commit is known."""
        return self._told_offset

    @property
    def next_offset(self) -> int:
        """The offset of the first record of the next append."""
        return self._raft.log.end_offset

    @property
    def voters(self) -> VoterSet:
        return self._raft.voters

    @property
    def kraft_version(self) -> int:
        return self._store.control.kraft_version

    @property
    def has_followers(self) -> bool:
        """Whether anybody but this node copies the log."""
        return len(self._raft.voters) > 1 or bool(self._raft.view().observers)

    def view(self) -> QuorumView:
        """The quorum; times are of `Clock.monotonic_ms`."""
        return self._raft.view()

    @property
    def _raft(self) -> RaftCore:
        assert self._core is not None, "open the log first"
        return self._core

    # --- starting and stopping

    def open(self) -> None:
        """Blocks while the files are read. What is known to be committed is told at once, the rest when it is."""
        summary = self._store.open(self._clock.now_ms())
        voters = self._voters()
        snapshot = self._store.snapshot
        if snapshot is not None:
            position = snapshot.position
            self._told_offset = position.offset
            self._listener.snapshot_loaded(
                snapshot.records, position.offset - 1, position.epoch, snapshot.last_contained_timestamp_ms
            )
        in_log = self._store.voters_in_log or self._store.control.voters is None
        self._core = RaftCore(self._key, voters, summary, self._random, self._settings.quorum, voters_in_log=in_log)
        log.debug(
            "metadata log opened path=%s start=%d end=%d epoch=%d",
            self._directory,
            summary.start.offset,
            summary.end_offset,
            summary.last.epoch,
        )
        self._carry_out(self._core.start(self._store.read_election(), self._clock.monotonic_ms()))

    def _voters(self) -> VoterSet:
        voters = self._store.control.voters or self._static_voters
        if voters is None:
            raise MetadataLogError(
                f"{self._directory} does not say who votes and controller.quorum.voters is not set; "
                "format it with `quire storage format --standalone`"
            )
        if not voters.is_only(self._key):
            raise MetadataLogError(
                f"{self._directory} belongs to a quorum of the controllers {', '.join(map(str, voters.ids))}, "
                f"and node {self._key.id} can so far only be a quorum of its own"
            )
        return voters

    def close(self) -> None:
        """Leaves the quorum, makes everything durable and closes the files; tells the listener nothing any more."""
        if self._stopped:
            return
        if self._core is not None:
            self._step(Resign())
        self._stop()
        try:
            self._store.close()
        except OSError as error:
            # What is committed is on disk already; the next start scans the rest, as after a crash.
            log.error("metadata log not closed cleanly path=%s error=%s", self._directory, error)

    def _stop(self) -> None:
        self._stopped = True
        for timer in (self._timer, self._snapshot_timer, self._room_timer):
            if timer is not None:
                timer.cancel()

    def _fail(self, error: Exception) -> None:
        if self._stopped:
            return
        log.error("metadata log failed path=%s error=%s", self._directory, error)
        self._stop()
        self._failed(error)

    # --- a full disk

    @property
    def waits_for_room(self) -> bool:
        return self._room_timer is not None

    def _wait_for_room(self, error: OSError) -> None:
        """Nothing is broken, and nobody was told of what could not be written: it is tried again, in order."""
        if not self._told_of_no_room:
            log.error("the metadata cannot change until there is room on the disk of %s: %s", self._directory, error)
        self._told_of_no_room = True
        if not self.waits_for_room:
            self._room_timer = self._clock.call_later(ROOM_CHECK_MS, self._try_again)

    def _try_again(self) -> None:
        self._room_timer = None
        self._carry_out([])
        if not self.waits_for_room and not self._stopped:
            self._told_of_no_room = False
            log.info("there is room again on the disk of %s", self._directory)

    # --- appending

    def append(self, records: Sequence[VersionedRecord], now_ms: int) -> int:
        """Writes the records as one batch, all committed or none, and returns the offset of the first.

        `now_ms` becomes their timestamp. NotLeaderError if this node does not lead (any more).
        """
        assert records, "a batch has at least one record"
        base_offset = self.next_offset
        self._step(Propose(len(records), _Proposal(records, now_ms)))
        return base_offset

    # --- the machine and its effects

    def _step(self, event: Event) -> None:
        self._carry_out(self._raft.step(event, self._clock.monotonic_ms()))

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        """Carries effects out in order, also when carrying one out leads to more."""
        self._effects.extend(effects)
        if self._running or self.waits_for_room:
            return
        self._running = True
        try:
            while self._effects and not self._stopped and not self.waits_for_room:
                self._carry_out_or_wait(self._effects.popleft())
        except (OSError, MetadataLogError) as error:
            self._fail(error)
        finally:
            self._running = False
        self._arm_timer()

    def _carry_out_or_wait(self, effect: Effect) -> None:
        try:
            self._carry_out_one(effect)
        except OSError as error:
            if not isinstance(effect, Append | PersistElection) or not is_full(error):
                raise
            self._effects.appendleft(effect)
            self._wait_for_room(error)

    def _carry_out_one(self, effect: Effect) -> None:
        match effect:
            case Append(batch):
                self._write(batch)
            case PersistElection(election):
                self._store.write_election(election, self._raft.voters)
            case SyncLog():
                self._store.sync(self._synced)
            case HighWatermark(offset):
                self._tell_committed(offset)
            case LeaderChanged(leader_id, epoch):
                log.debug("metadata leader leader=%s epoch=%d", leader_id, epoch)
                if leader_id != self._key.id:
                    self._uncommitted.clear()
                    self._tell_leader(leader_id, epoch)
            case Truncate(offset):
                self._store.truncate(offset)
            case _:
                raise AssertionError(f"a quorum of one talks to nobody, but wants to {effect}")

    def _write(self, batch: Batch) -> None:
        payload, now_ms = batch.payload, self._clock.now_ms()
        records: list[Message] = []
        if isinstance(payload, StartOfEpoch):
            encoded = start_of_epoch(
                payload, self.kraft_version, base_offset=batch.base_offset, epoch=batch.epoch, now_ms=now_ms
            )
        else:
            assert isinstance(payload, _Proposal)
            now_ms = payload.timestamp_ms
            records = [record for record, _ in payload.records]
            framed = [Record(0, now_ms, None, encode_frame(record, version)) for record, version in payload.records]
            encoded = build_batch(framed, base_offset=batch.base_offset, leader_epoch=batch.epoch)
        self._store.append(encoded, now_ms)
        self._uncommitted.append(
            CommittedBatch(batch.base_offset, batch.next_offset - 1, batch.epoch, now_ms, len(encoded), records)
        )

    def _synced(self, offset: int) -> None:
        if not self._stopped:
            self._step(LogSynced(offset))

    def _not_synced(self, error: Exception) -> None:
        """Of a full disk it was not the log itself: that had its room when it was written."""
        if isinstance(error, OSError) and is_full(error) and not self._stopped:
            self._effects.appendleft(SyncLog(self.next_offset))
            self._wait_for_room(error)
        else:
            self._fail(error)

    def _arm_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ms = self._raft.deadline_ms
        if deadline_ms < inf and not self._stopped:
            delay_ms = max(0.0, deadline_ms - self._clock.monotonic_ms())
            self._timer = self._clock.call_later(delay_ms, lambda: self._step(Tick()))

    # --- telling

    def _tell_committed(self, offset: int) -> None:
        first_known = self._uncommitted[0].base_offset if self._uncommitted else offset
        batches = list(self._store.read(self._told_offset, min(first_known, offset)))
        while self._uncommitted and self._uncommitted[0].last_offset < offset:
            batches.append(self._uncommitted.popleft())
        self._told_offset = offset
        self._bytes_since_snapshot += sum(batch.size_bytes for batch in batches)
        self._listener.committed(batches)
        if self._raft.is_leader and offset > self._raft.epoch_start_offset:
            self._tell_leader(self._key.id, self._raft.epoch)
        self._snapshot_if_due()

    def _tell_leader(self, leader_id: int | None, epoch: int) -> None:
        if self._told_leader != (leader_id, epoch):
            self._told_leader = (leader_id, epoch)
            self._listener.leader_changed(leader_id, epoch)

    # --- snapshots

    def _snapshot_if_due(self) -> None:
        if self._bytes_since_snapshot >= self._settings.bytes_between_snapshots:
            self.take_snapshot()
        elif self._snapshot_timer is None and self._settings.snapshot_interval_ms and self._bytes_since_snapshot:
            self._snapshot_timer = self._clock.call_later(self._settings.snapshot_interval_ms, self.take_snapshot)

    def take_snapshot(self) -> None:
        """Writes the committed state in a job, then lets go of what it replaces; nothing if one is being written."""
        content = None if self._writing_snapshot or self._stopped else self._listener.snapshot_content()
        if content is None:
            return
        if self._snapshot_timer is not None:
            self._snapshot_timer.cancel()
            self._snapshot_timer = None
        self._writing_snapshot = True
        self._bytes_since_snapshot = 0
        position = LogPosition(content.epoch, content.last_offset + 1)
        batches = snapshot_file.encode_snapshot(
            content.records,
            epoch=content.epoch,
            now_ms=self._clock.now_ms(),
            last_contained_timestamp_ms=content.timestamp_ms,
            kraft_version=self.kraft_version,
            voters=self._raft.voters,
        )
        try:
            self._store.write_snapshot(
                position,
                batches,
                lambda: self._snapshot_written(position),
                self._snapshot_failed,
                self._clock.now_ms(),
            )
        except OSError as error:
            self._snapshot_failed(error)

    def _snapshot_failed(self, error: Exception) -> None:
        """For want of room is no reason to end: the log has everything, and the next one may be written."""
        if not is_full(error):
            self._fail(error)
            return
        log.error("no metadata snapshot is written to %s until there is room again: %s", self._directory, error)
        self._writing_snapshot = False
        if self._snapshot_timer is None and not self._stopped:
            self._snapshot_timer = self._clock.call_later(SNAPSHOT_RETRY_MS, self.take_snapshot)

    def _snapshot_written(self, position: LogPosition) -> None:
        self._writing_snapshot = False
        if self._stopped:
            return
        log.info("metadata snapshot written end_offset=%d epoch=%d", position.offset, position.epoch)
        try:
            start = self._store.clean(self._clock.now_ms())
        except OSError as error:
            self._fail(error)
            return
        if start is not None and start.offset > self._raft.log.start.offset:
            self._step(LogCleaned(start))
