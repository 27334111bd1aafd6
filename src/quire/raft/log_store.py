"""The folder `__cluster_metadata-0`: the log, its snapshots and `quorum-state`, without any decision about them.

`LogStore` opens the folder, writes and reads batches, syncs the log in a job, and keeps log and snapshots together: the
log never starts after the end of the newest snapshot. Only `MetadataLog` uses it.
"""

import logging
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from quire.protocol import uuids
from quire.protocol.errors import ApiError
from quire.protocol.internal_topics import CLUSTER_METADATA
from quire.protocol.records import BatchHeader, Record, decode_batch, read_header, walk_batches
from quire.protocol.schema import Message
from quire.raft import quorum_state, snapshot_file
from quire.raft.control_batches import read_control
from quire.raft.control_state import ControlHistory, ControlState
from quire.raft.errors import MetadataLogError
from quire.raft.log_summary import LogPosition, LogSummary
from quire.raft.messages import Batch
from quire.raft.quorum_state import Election
from quire.raft.record_frame import decode_frame
from quire.raft.replicas import VoterSet
from quire.raft.settings import MetadataLogSettings
from quire.raft.snapshot_file import Snapshot, SnapshotError
from quire.seams import Buffer, Disk, Jobs
from quire.seams.disk import write_atomically
from quire.storage import Log, LogConfig
from quire.storage.flushing.flusher import Flusher
from quire.storage.leader_epochs import NO_EPOCH
from quire.storage.scanning.damage import DamagedLogError

FOLDER = f"{CLUSTER_METADATA}-0"
READ_BYTES = 1 << 20
KEPT_SNAPSHOTS = 2
"""Kept regardless of the retention: if the newest is damaged, the one before it and the log still have everything."""

log = logging.getLogger("quire.raft")


class CommittedBatch(NamedTuple):
    """A batch that every later leader will have, with its records decoded; a control batch has none."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    size_bytes: int
    records: Sequence[Message]


class LogStore:
    __slots__ = (
        "_disk",
        "_flusher",
        "_jobs",
        "_log",
        "_settings",
        "_snapshots",
        "history",
        "path",
        "snapshot",
    )

    def __init__(
        self,
        disk: Disk,
        jobs: Jobs,
        directory: str,
        settings: MetadataLogSettings,
        failed: Callable[[Exception], None],
    ) -> None:
        """`failed` is called when a job fails."""
        self._disk = disk
        self._jobs = jobs
        self._flusher = Flusher(jobs, failed)
        self.path = f"{directory}/{FOLDER}"
        self._settings = settings
        self.history = ControlHistory()
        """Version and voters at each offset. `RaftCore` gets this history too, and keeps it up to date."""
        self.snapshot: Snapshot | None = None
        """The newest complete snapshot when the folder was opened."""

    # --- Opening

    def open(self, now_ms: int) -> LogSummary:
        """Blocks. Afterwards everything in the log is on disk."""
        self._prepare_folder()
        self._snapshots = snapshot_file.list_snapshots(self._disk, self.path)
        self.snapshot = self._newest_whole_snapshot()
        config = LogConfig(segment_bytes=self._settings.segment_bytes, segment_ms=self._settings.segment_ms)
        try:
            self._log = Log.open(self._disk, self.path, config, clean=False, only_torn=True, now_ms=now_ms)
        except DamagedLogError as error:
            raise MetadataLogError(
                f"{error}. This is not an unfinished write: cut there, the log would lose committed metadata. "
                "Restore the file from a copy or the folder from another controller; nothing has been changed"
            ) from error
        self._log.on_roll = Log.sync_completed
        start = self._join_log_and_snapshot()
        self._log.flush()
        if self.snapshot is not None:
            self.history.restart_at(self.snapshot.control)
        self._read_controls(self.snapshot.position.offset if self.snapshot is not None else 0)
        summary = LogSummary(start=start, end_offset=self._log.end_offset, synced_offset=self._log.end_offset)
        summary.epoch_starts = [(epoch, max(offset, start.offset)) for epoch, offset in self._log.epochs.entries]
        return summary

    def _prepare_folder(self) -> None:
        disk = self._disk
        if not disk.is_dir(self.path):
            disk.make_dirs(self.path)
            disk.sync_dir(self.path.rpartition("/")[0])
        for name in disk.list_dir(self.path):
            if name.endswith((snapshot_file.UNFINISHED_SUFFIX, ".checkpoint.deleted")):
                disk.remove(f"{self.path}/{name}")
        if not disk.exists(f"{self.path}/partition.metadata"):
            content = f"version: 0\ntopic_id: {uuids.to_text(uuids.METADATA_TOPIC_ID)}".encode()
            write_atomically(disk, f"{self.path}/partition.metadata", content)

    def _newest_whole_snapshot(self) -> Snapshot | None:
        while self._snapshots:
            try:
                return snapshot_file.read_snapshot(self._disk, self.path, snapshot_file.file_name(self._snapshots[-1]))
            except SnapshotError as error:
                log.warning("snapshot skipped path=%s error=%s", self.path, error)
                self._snapshots.pop()
        return None

    def _join_log_and_snapshot(self) -> LogPosition:
        """Makes the log start at a snapshot's end; LogPosition(0, 0) counts as one."""
        start, end = self._log.start_offset, self._log.end_offset
        newest = LogPosition(0, 0) if self.snapshot is None else self.snapshot.position
        if newest.offset > end or self._differs_from(newest):
            # The log before a snapshot is not needed. A log that ends before it would continue after a gap, and one
            # with other records belongs to a leader whose records were never committed: a crash came between the
            # fetched snapshot and the restart of the log.
            log.warning("log restarted at snapshot path=%s end=%d snapshot=%d", self.path, end, newest.offset)
            self._log.truncate_fully_and_start_at(newest.offset)
            return newest
        if newest.offset < start:
            raise MetadataLogError(
                f"{self.path} starts at offset {start} and has no whole snapshot up to there; "
                "restore the folder from another node or a backup"
            )
        position = next((each for each in self._snapshots if each.offset >= start), LogPosition(0, 0))
        if position.offset > start:
            self._log.delete_records_before(position.offset)
        return position

    def _differs_from(self, newest: LogPosition) -> bool:
        """Whether the log has a record of another leader, earlier or later, where the snapshot has its last one."""
        last = newest.offset - 1
        return last >= self._log.start_offset and self._log.epochs.epoch_of(last) not in (NO_EPOCH, newest.epoch)

    def _read_controls(self, offset: int) -> None:
        for content, header in self._batches(offset, self._log.end_offset):
            if header.is_control:
                self.history.append(header.base_offset, read_control(decode_batch(content, header)))

    @property
    def control(self) -> ControlState:
        """Version and voters according to the snapshot and the log, committed or not."""
        return self.history.latest

    # --- Quorum-state

    def read_election(self) -> Election:
        try:
            content = self._disk.read_file(f"{self.path}/{quorum_state.FILE_NAME}")
        except FileNotFoundError:
            return Election()
        return quorum_state.decode(content)

    def write_election(self, election: Election, voters: VoterSet) -> None:
        content = quorum_state.encode(election, voters, self.control.kraft_version)
        write_atomically(self._disk, f"{self.path}/{quorum_state.FILE_NAME}", content)

    # --- The log

    def append(self, batch: Buffer, now_ms: int) -> None:
        """A batch that already has its offset and epoch."""
        header = read_header(batch, 0)
        self._log.append_as_follower(batch, [header], now_ms)

    def sync(self, done: Callable[[int], None]) -> None:
        """Syncs the log in a job and reports up to which offset; calls during that job share the next one."""
        self._flusher.flush(self._log, lambda: done(self._log.recovery_point))

    def truncate(self, offset: int) -> None:
        self._log.truncate_to(offset)

    def read(self, start: int, end: int) -> Iterator[CommittedBatch]:
        """The batches from `start` up to `end`, both of which are bounds of batches."""
        for content, header in self._batches(start, end):
            records: list[Message] = []
            if not header.is_control:
                records = [decode_frame(record.value) for record in _decode(content, header)]
            yield CommittedBatch(
                header.base_offset, header.last_offset, header.leader_epoch, header.max_timestamp, header.size, records
            )

    def _batches(self, start: int, end: int) -> Iterator[tuple[bytes, BatchHeader]]:
        offset = start
        while offset < end:
            found = self._log.read(offset, READ_BYTES)
            assert found is not None, "the log ends before its end"
            content = found.read()
            for header in walk_batches(content):
                if header.base_offset >= end:
                    return
                yield content, header
                offset = header.next_offset

    def read_batches(self, offset: int, max_bytes: int) -> tuple[Batch, ...]:
        """Whole batches from `offset` on as they are in the log, at least one; none if the log does not reach there."""
        if not self._log.start_offset <= offset < self._log.end_offset:
            return ()
        found = self._log.read(offset, max_bytes)
        assert found is not None, "the log ends before its end"
        content = found.read()
        return tuple(
            Batch(header.base_offset, header.next_offset, header.leader_epoch, content[header.position : header.end])
            for header in walk_batches(content)
        )

    @property
    def size_bytes(self) -> int:
        return self._log.size_bytes

    # --- Snapshots

    def write_snapshot(
        self,
        position: LogPosition,
        batches: Iterable[Buffer],
        done: Callable[[], None],
        failed: Callable[[Exception], None],
        now_ms: int,
    ) -> None:
        """Writes a snapshot in a job. The log rolls, so that the old segment can be deleted later."""
        self._log.roll(now_ms)

        def work() -> None:
            snapshot_file.write_snapshot(self._disk, self.path, snapshot_file.file_name(position), batches)

        def finished(_: None) -> None:
            self._add_snapshot(position)
            done()

        self._jobs.submit(work, finished, failed)

    def restart_at(self, position: LogPosition) -> None:
        """A fetched snapshot, which is on disk, replaces the log."""
        self._log.truncate_fully_and_start_at(position.offset)
        self._add_snapshot(position)

    def _add_snapshot(self, position: LogPosition) -> None:
        """The same snapshot may be fetched and taken, and a fetched one may overtake one that is being written."""
        if position not in self._snapshots:
            insort(self._snapshots, position, key=lambda each: each.offset)

    def read_snapshot_part(self, position: LogPosition, offset: int, max_bytes: int) -> tuple[int, bytes] | None:
        """The size of a snapshot's file, and some bytes of it; None if there is no such snapshot."""
        if position not in self._snapshots:
            return None
        file = self._disk.open(f"{self.path}/{snapshot_file.file_name(position)}")
        try:
            return file.size(), file.pread(max_bytes, offset)
        finally:
            file.close()

    def clean(self, now_ms: int) -> LogPosition | None:
        """Deletes old snapshots and the log before the oldest that stays; returns the new log start, if it moved."""
        start: LogPosition | None = None
        while len(self._snapshots) > KEPT_SNAPSHOTS and self._is_surplus(self._snapshots[0], now_ms):
            oldest, start = self._snapshots[0], self._snapshots[1]
            # The log goes first: a log that starts before its oldest snapshot is whole, the other way round is not.
            self._log.delete_records_before(max(start.offset, self._log.start_offset))
            self._disk.remove(f"{self.path}/{snapshot_file.file_name(oldest)}")
            self._snapshots.pop(0)
            log.info("snapshot removed path=%s end_offset=%d", self.path, oldest.offset)
        return start

    def _is_surplus(self, oldest: LogPosition, now_ms: int) -> bool:
        names = [f"{self.path}/{snapshot_file.file_name(each)}" for each in self._snapshots]
        if self._log.size_bytes + sum(map(self._disk.file_size, names)) > self._settings.retention_bytes:
            return True
        timestamp_ms = snapshot_file.read_timestamp(self._disk, self.path, snapshot_file.file_name(oldest))
        return self._settings.retention_ms >= 0 and timestamp_ms < now_ms - self._settings.retention_ms

    def close(self) -> None:
        try:
            self._log.close()
        finally:
            self._log.close_files()


def _decode(content: bytes, header: BatchHeader) -> list[Record]:
    try:
        return decode_batch(content, header)
    except ApiError as error:
        raise MetadataLogError(f"the metadata log is damaged at offset {header.base_offset}: {error}") from error
