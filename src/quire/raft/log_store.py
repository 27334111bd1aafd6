"""The folder `__cluster_metadata-0`: the log, its snapshots and `quorum-state`, without any decision about them.

`LogStore` opens the folder, writes and reads batches, brings the log to disk through a job, and keeps log and snapshots
together: the log never starts after the newest snapshot ends. It is `MetadataLog`'s and nobody else's.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from quire.protocol import uuids
from quire.protocol.errors import ApiError
from quire.protocol.internal_topics import CLUSTER_METADATA
from quire.protocol.records import BatchHeader, Record, decode_batch, read_header, walk_batches
from quire.protocol.schema import Message
from quire.raft import quorum_state, snapshot_file
from quire.raft.control_batches import ControlState
from quire.raft.errors import MetadataLogError
from quire.raft.log_summary import LogPosition, LogSummary
from quire.raft.quorum_state import Election
from quire.raft.record_frame import decode_frame
from quire.raft.replicas import VoterSet
from quire.raft.settings import MetadataLogSettings
from quire.raft.snapshot_file import Snapshot, SnapshotError
from quire.seams import Buffer, Disk, Jobs
from quire.seams.disk import write_atomically
from quire.storage import Log, LogConfig
from quire.storage.damage import DamagedLogError
from quire.storage.flusher import Flusher

FOLDER = f"{CLUSTER_METADATA}-0"
READ_BYTES = 1 << 20
KEPT_SNAPSHOTS = 2
"""Whatever the retention says: should the newest turn out to be damaged, the one before it and the log still serve."""

log = logging.getLogger("quire.raft")


class CommittedBatch(NamedTuple):
    """A batch that every later leader will have, with its records decoded; control batches show none."""

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
        "_path",
        "_settings",
        "_snapshots",
        "control",
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
        self._path = f"{directory}/{FOLDER}"
        self._settings = settings
        self.control = ControlState()
        """Version and voters as the snapshot and the log, committed or not, say."""
        self.snapshot: Snapshot | None = None
        """The newest whole one when the folder was opened."""

    # --- opening

    def open(self, now_ms: int) -> LogSummary:
        """Blocks. Afterwards everything in the log is on disk."""
        self._prepare_folder()
        self._snapshots = snapshot_file.list_snapshots(self._disk, self._path)
        self.snapshot = self._newest_whole_snapshot()
        config = LogConfig(segment_bytes=self._settings.segment_bytes, segment_ms=self._settings.segment_ms)
        try:
            self._log = Log.open(self._disk, self._path, config, clean=False, only_torn=True, now_ms=now_ms)
        except DamagedLogError as error:
            raise MetadataLogError(
                f"{error}. This is no unfinished write: cut there, the log would lose metadata that was committed. "
                "Restore the file from a copy or the folder from another controller; nothing has been changed"
            ) from error
        self._log.on_roll = Log.sync_completed
        start = self._join_log_and_snapshot()
        self._log.flush()
        if self.snapshot is not None:
            self.control = self.snapshot.control
        self._read_controls(self.snapshot.position.offset if self.snapshot is not None else 0)
        summary = LogSummary(start=start, end_offset=self._log.end_offset, synced_offset=self._log.end_offset)
        summary.epoch_starts = [(epoch, max(offset, start.offset)) for epoch, offset in self._log.epochs.entries]
        return summary

    def _prepare_folder(self) -> None:
        disk = self._disk
        if not disk.is_dir(self._path):
            disk.make_dirs(self._path)
            disk.sync_dir(self._path.rpartition("/")[0])
        for name in disk.list_dir(self._path):
            if name.endswith((snapshot_file.UNFINISHED_SUFFIX, ".checkpoint.deleted")):
                disk.remove(f"{self._path}/{name}")
        if not disk.exists(f"{self._path}/partition.metadata"):
            content = f"version: 0\ntopic_id: {uuids.to_text(uuids.METADATA_TOPIC_ID)}".encode()
            write_atomically(disk, f"{self._path}/partition.metadata", content)

    def _newest_whole_snapshot(self) -> Snapshot | None:
        while self._snapshots:
            try:
                return snapshot_file.read_snapshot(self._disk, self._path, snapshot_file.file_name(self._snapshots[-1]))
            except SnapshotError as error:
                log.warning("snapshot skipped path=%s error=%s", self._path, error)
                self._snapshots.pop()
        return None

    def _join_log_and_snapshot(self) -> LogPosition:
        """Lets the log start at a snapshot's end; LogPosition(0, 0) counts as one."""
        start, end = self._log.start_offset, self._log.end_offset
        newest = LogPosition(0, 0) if self.snapshot is None else self.snapshot.position
        if newest.offset > end:
            # The log before a snapshot is not needed; without this the log would go on with a gap.
            log.warning("log restarted at snapshot path=%s end=%d snapshot=%d", self._path, end, newest.offset)
            self._log.truncate_fully_and_start_at(newest.offset)
            return newest
        if newest.offset < start:
            raise MetadataLogError(
                f"{self._path} starts at offset {start} and has no whole snapshot up to there; "
                "restore the folder from another node or a backup"
            )
        position = next((each for each in self._snapshots if each.offset >= start), LogPosition(0, 0))
        if position.offset > start:
            self._log.delete_records_before(position.offset)
        return position

    def _read_controls(self, offset: int) -> None:
        for content, header in self._batches(offset, self._log.end_offset):
            if header.is_control:
                self.control.read(decode_batch(content, header))

    @property
    def voters_in_log(self) -> bool:
        """Whether the log, or a snapshot of it, says who votes; the snapshot of the formatting does not count."""
        return self._log.end_offset > 0

    # --- quorum-state

    def read_election(self) -> Election:
        try:
            content = self._disk.read_file(f"{self._path}/{quorum_state.FILE_NAME}")
        except FileNotFoundError:
            return Election()
        return quorum_state.decode(content)

    def write_election(self, election: Election, voters: VoterSet) -> None:
        content = quorum_state.encode(election, voters, self.control.kraft_version)
        write_atomically(self._disk, f"{self._path}/{quorum_state.FILE_NAME}", content)

    # --- the log

    def append(self, batch: Buffer, now_ms: int) -> None:
        """A batch that already has its offset and epoch."""
        header = read_header(batch, 0)
        self._log.append_as_follower(batch, [header], now_ms)

    def sync(self, done: Callable[[int], None]) -> None:
        """Brings the log to disk in a job and says up to which offset; what is asked for meanwhile shares the next."""
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

    @property
    def size_bytes(self) -> int:
        return self._log.size_bytes

    # --- snapshots

    def write_snapshot(
        self,
        position: LogPosition,
        batches: Iterable[Buffer],
        done: Callable[[], None],
        failed: Callable[[Exception], None],
        now_ms: int,
    ) -> None:
        """Writes a snapshot in a job. The log begins a new segment, so that the old one can go in time."""
        self._log.roll(now_ms)

        def work() -> None:
            snapshot_file.write_snapshot(self._disk, self._path, snapshot_file.file_name(position), batches)

        def finished(_: None) -> None:
            self._snapshots.append(position)
            done()

        self._jobs.submit(work, finished, failed)

    def clean(self, now_ms: int) -> LogPosition | None:
        """Lets go of old snapshots and the log before the oldest that stays; where the log then starts, if it moved."""
        start: LogPosition | None = None
        while len(self._snapshots) > KEPT_SNAPSHOTS and self._is_surplus(self._snapshots[0], now_ms):
            oldest, start = self._snapshots[0], self._snapshots[1]
            # The log goes first: a log that starts before its oldest snapshot is whole, the other way round is not.
            self._log.delete_records_before(max(start.offset, self._log.start_offset))
            self._disk.remove(f"{self._path}/{snapshot_file.file_name(oldest)}")
            self._snapshots.pop(0)
            log.info("snapshot removed path=%s end_offset=%d", self._path, oldest.offset)
        return start

    def _is_surplus(self, oldest: LogPosition, now_ms: int) -> bool:
        names = [f"{self._path}/{snapshot_file.file_name(each)}" for each in self._snapshots]
        if self._log.size_bytes + sum(map(self._disk.file_size, names)) > self._settings.retention_bytes:
            return True
        timestamp_ms = snapshot_file.read_timestamp(self._disk, self._path, snapshot_file.file_name(oldest))
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
