"""One replica in memory: its machine, its log, and the state of both after a power loss.

The disk behaves like the worst real one: a crash undoes every append, truncation and restart of the log, unless a sync
that began later has completed.
"""

from typing import NamedTuple

from quire.raft.control_state import ControlHistory, ControlState
from quire.raft.core import RaftCore
from quire.raft.effects import SyncLog
from quire.raft.log_summary import LogPosition, LogSummary
from quire.raft.messages import Batch
from quire.raft.quorum_state import Election
from quire.raft.replicas import ReplicaKey, VoterSet


class MemoryLog(NamedTuple):
    """A log that starts at a snapshot's end. Never changed in place, so that the disk can have an earlier version."""

    start: LogPosition
    start_control: ControlState
    batches: tuple[Batch, ...] = ()

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start.offset

    def up_to(self, offset: int) -> "MemoryLog":
        return self._replace(batches=tuple(batch for batch in self.batches if batch.next_offset <= offset))

    def starting_at(self, start: LogPosition, control: ControlState) -> "MemoryLog":
        """The log without the part that the snapshot covers; only the snapshot if that is longer."""
        return MemoryLog(start, control, tuple(batch for batch in self.batches if batch.base_offset >= start.offset))

    def summary(self) -> LogSummary:
        summary = LogSummary(start=self.start, end_offset=self.start.offset)
        for batch in self.batches:
            summary.append(batch.epoch, batch.base_offset, batch.next_offset)
        summary.synced_offset = summary.end_offset
        return summary

    def history(self, static_voters: VoterSet) -> ControlHistory:
        history = ControlHistory(self.start_control, static_voters)
        for batch in self.batches:
            history.append(batch.base_offset, batch.control)
        return history


class MemoryNode:
    def __init__(self, key: ReplicaKey, formatted: ControlState) -> None:
        self.key = key
        self.core: RaftCore | None = None
        self.election = Election()
        self.log = self.on_disk = MemoryLog(LogPosition(0, 0), formatted)
        self.sync_wanted: SyncLog | None = None
        self.sync_running: SyncLog | None = None
        self.snapshot_wanted: tuple[int, LogPosition] | None = None
        self.snapshot: tuple[LogPosition, ControlState] | None = None
        """The last one fetched."""
        self.high_watermark = -1
        self.cuts = 0
        self.is_cut_synced = True

    @property
    def id(self) -> int:
        return self.key.id

    @property
    def end_offset(self) -> int:
        return self.log.end_offset

    @property
    def batches(self) -> tuple[Batch, ...]:
        return self.log.batches

    @property
    def start(self) -> LogPosition:
        return self.log.start

    @property
    def has_sync(self) -> bool:
        return self.sync_wanted is not None or self.sync_running is not None

    def append(self, batch: Batch) -> None:
        assert batch.base_offset == self.end_offset
        assert self.is_cut_synced, "appended behind a truncation that a crash may undo"
        self.log = self.log._replace(batches=(*self.batches, batch))

    def truncate(self, offset: int) -> None:
        self.log = self.log.up_to(offset)
        self._cut()

    def restart(self, position: LogPosition) -> None:
        assert self.snapshot is not None and self.snapshot[0] == position, "no such snapshot"
        self.log = MemoryLog(*self.snapshot)
        self._cut()

    def _cut(self) -> None:
        self.cuts += 1
        self.is_cut_synced = False

    def clean(self, start: LogPosition, control: ControlState) -> None:
        self.log = self.log.starting_at(start, control)
        self.on_disk = self.on_disk.starting_at(start, control)

    def begin_sync(self) -> None:
        assert self.sync_wanted is not None and self.sync_running is None
        self.sync_wanted, self.sync_running = None, SyncLog(self.end_offset, self.cuts)

    def finish_sync(self) -> SyncLog:
        done = self.sync_running
        assert done is not None
        self.sync_running = None
        if done.cuts == self.cuts:
            self.on_disk = self.log.up_to(done.offset)
            self.is_cut_synced = True
        return done

    def crash(self) -> None:
        self.core = None
        self.log = self.on_disk
        if self.snapshot is not None and self.snapshot[0].offset > self.log.end_offset:
            # The snapshot is on disk, and a log that ends before it is not needed.
            self.log = self.on_disk = MemoryLog(*self.snapshot)
        self.sync_wanted = self.sync_running = self.snapshot_wanted = None
        self.high_watermark = -1
        self.cuts = 0
        self.is_cut_synced = True
