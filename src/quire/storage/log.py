"""A partition's log: whole batches at rising offsets, in segments, in Kafka's files.

Guarantees: offsets are given once and in order; a batch is in the log whole or not at all; what `finish_flush` has
recorded survives any crash, and opening finds a prefix of what was written that holds at least that. One thread uses a
log; only what a `FlushPlan` or `RetiredSegments` does may run elsewhere. Every method may raise OSError, after which
the log is still consistent in memory; the caller decides what becomes of the data directory.

    append -> active segment (one write)         read -> a slice of one segment's file
           -> epochs, producers (in memory)      find_timestamp -> time index, offset index, one batch
"""

from collections.abc import Callable, Sequence
from typing import Unpack

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records.batch import LENGTH_END, BatchHeader, patch
from quire.seams import Buffer, Disk, FileSlice
from quire.storage import retention, timestamp_lookup
from quire.storage.aborted_lookup import aborted_in
from quire.storage.append_info import AppendInfo
from quire.storage.cleaning.swap import swap_in
from quire.storage.end_marker import read_end_marker
from quire.storage.index_file import IndexCache
from quire.storage.log_config import LogConfig
from quire.storage.log_flush import FlushPlan, FlushState
from quire.storage.log_recovery import KnownOfLog, OpenedLog, begin_log, open_log
from quire.storage.offset_index import MAX_RELATIVE_OFFSET
from quire.storage.positions import LogPosition, RecentPositions
from quire.storage.producer_replay import replay_producers
from quire.storage.producer_state import ProducerEntry, ProducerState, RememberedBatch
from quire.storage.reserve import NO_RESERVE, Reserve
from quire.storage.retention import Expired
from quire.storage.retired import Remover, RetiredSegments, remove_now
from quire.storage.roll_mark import make_mark
from quire.storage.rolling import has_room
from quire.storage.segment import Segment
from quire.storage.time_search import TimeSearch, TimestampedOffset
from quire.storage.transaction_index import AbortedTransaction


class Log:
    __slots__ = (
        "_cache",
        "_disk",
        "_flush_state",
        "_recent",
        "_remove_retired",
        "_segments",
        "_snapshots",
        "closed",
        "config",
        "end_offset",
        "epochs",
        "on_roll",
        "path",
        "producer_state",
        "reserve",
        "start_offset",
    )

    def __init__(
        self, disk: Disk, path: str, config: LogConfig, opened: OpenedLog, cache: IndexCache, remove_retired: Remover
    ) -> None:
        self._disk = disk
        self._cache = cache
        self._remove_retired = remove_retired
        self._segments = opened.segments
        self._snapshots = opened.snapshots
        self.producer_state: ProducerState = opened.producers
        """What is known of each producer, as far as that is not expired: it follows from what is in the log."""
        self._recent = RecentPositions()
        self._flush_state = FlushState(opened.recovery_point, opened.unsynced, opened.epochs_saved, opened.roll_marks)
        self.path = path
        self.closed = False
        self.config = config
        self.epochs = opened.epochs
        self.start_offset = opened.start_offset
        self.end_offset = opened.end_offset
        """The offset the next record gets."""
        self.reserve: Reserve = NO_RESERVE
        """While that is missing, what room there is on the disk is not for this log."""
        self.on_roll: Callable[[Log], None] | None = None
        """Called after a new segment was begun: the time to flush those before it."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        path: str,
        config: LogConfig,
        *,
        cache: IndexCache | None = None,
        remove_retired: Remover = remove_now,
        **known: Unpack[KnownOfLog],
    ) -> "Log":
        """Opens the log in the folder `path`, or begins one in an empty folder. May run in a job."""
        cache = cache or IndexCache()
        return cls(disk, path, config, open_log(disk, path, config, cache, **known), cache, remove_retired)

    @classmethod
    def begin(
        cls, disk: Disk, path: str, config: LogConfig, *, now_ms: int, cache: IndexCache, remove_retired: Remover
    ) -> "Log":
        """A log from offset 0 in a folder that is empty for certain; `open` does the same, but has a look first."""
        opened = begin_log(disk, path, config, cache, start_offset=0, now_ms=now_ms)
        return cls(disk, path, config, opened, cache, remove_retired)

    def __repr__(self) -> str:
        return f"Log({self.path!r}, {self.start_offset} to {self.end_offset})"

    @property
    def recovery_point(self) -> int:
        """Everything below is on disk."""
        return self._flush_state.recovery_point

    @property
    def truncations(self) -> int:
        """How often something was cut off its end: what was known of its segments before may be wrong now."""
        return self._flush_state.truncations

    @property
    def is_flush_due(self) -> bool:
        """Whether `flush.messages` or more records are not on disk: asked after every append, so kept to this."""
        return self.end_offset - self._flush_state.recovery_point >= self.config.flush_messages

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def segments(self) -> Sequence[Segment]:
        return list(self._segments)

    @property
    def end(self) -> LogPosition:
        """Where the next batch will be written."""
        active = self._segments.active
        return LogPosition(self.end_offset, active.base_offset, active.size)

    # Appending

    def append(
        self, records: memoryview | bytearray, headers: Sequence[BatchHeader], leader_epoch: int, now_ms: int
    ) -> AppendInfo:
        """Appends batches as the leader: they get the next offsets and the leader's epoch, in place, then one write.

        `headers` are those of `records`, in order, and are changed with them. Producers' batches must have passed
        `check_producer`. A crash during the write leaves a torn batch, which opening cuts off; nobody was told of it.
        """
        if len(records) > (most := self.config.segment_bytes):
            sentence = f"{len(records)} bytes do not fit into a segment of {most} (segment.bytes)"
            raise ApiError(ErrorCode.RECORD_LIST_TOO_LARGE, sentence)
        base_offset = offset = self.end_offset
        position = 0
        timestamp = -1
        for header in headers:
            patch(records, position, offset, leader_epoch)
            header.base_offset = offset
            header.leader_epoch = leader_epoch
            position += header.length + LENGTH_END
            offset += header.last_offset_delta + 1
            if header.max_timestamp > timestamp:
                timestamp = header.max_timestamp
        if self.epochs.latest != leader_epoch:
            # Before the write: an epoch without records is dropped when the log is opened, records without their epoch
            # would be taken for the previous leader's.
            self.epochs.assign(leader_epoch, base_offset)
        self._write(records, headers, offset - 1, timestamp, now_ms)
        return AppendInfo(base_offset, offset - 1, self.start_offset, timestamp)

    def append_as_follower(
        self, records: memoryview | bytearray | bytes, headers: Sequence[BatchHeader], now_ms: int
    ) -> AppendInfo:
        """Appends batches that already have their offsets and epochs, as they are. Crashes as in `append`."""
        base_offset = headers[0].base_offset
        offset = self.end_offset
        timestamp = -1
        for header in headers:
            if header.base_offset < offset:
                raise ApiError(
                    ErrorCode.CORRUPT_MESSAGE, f"{self.path} ends at {offset} and cannot take {header.base_offset}"
                )
            offset = header.next_offset
            timestamp = max(timestamp, header.max_timestamp)
        for header in headers:
            if header.leader_epoch > self.epochs.latest:
                self.epochs.assign(header.leader_epoch, header.base_offset)
        self._write(records, headers, offset - 1, timestamp, now_ms)
        return AppendInfo(base_offset, offset - 1, self.start_offset, timestamp)

    def _write(
        self, records: Buffer, headers: Sequence[BatchHeader], last_offset: int, timestamp: int, now_ms: int
    ) -> None:
        if self.reserve.is_missing and not self.reserve.set_aside():
            raise self.reserve.no_room(self.path)
        active = self._segments.active
        if not has_room(active, len(records), last_offset, timestamp, now_ms, self.config):
            # Not with the first batch: a segment begins where the one before it ends, until that is compacted.
            fits = last_offset - self.end_offset <= MAX_RELATIVE_OFFSET
            active = self._roll_to(self.end_offset if fits else headers[0].base_offset, now_ms)
        active.append(records, headers)
        self.end_offset = last_offset + 1
        for header in headers:
            if header.producer_id >= 0:
                if header.is_control:
                    self._end_transaction(records, header)
                else:
                    self.producer_state.update(header)

    def _end_transaction(self, records: Buffer, header: BatchHeader) -> None:
        marker = read_end_marker(records, header)
        aborted = self.producer_state.end_transaction(header, marker) if marker is not None else None
        if aborted is not None:
            self._segments.active.add_aborted(aborted)

    def roll(self, now_ms: int) -> None:
        """Begins a new segment, unless the active one is empty."""
        if self._segments.active.size:
            self._roll_to(self.end_offset, now_ms)

    def _roll_to(self, base_offset: int, now_ms: int) -> Segment:
        """Completes the active segment and begins another.

        A crash leaves both, or only the old one: then nothing was written to the new one that had been synced. The old
        one's indexes and the snapshot are synced by the flush that comes next, and rebuilt if it did not come to that:
        because the old one is scanned or, if it was on disk to its end, because of the mark.
        """
        completed = self._segments.active
        if self._flush_state.may_reach(base_offset):
            self._flush_state.rolls(make_mark(self._disk, self.path, base_offset))
        completed.save_indexes()
        self._flush_state.wrote([*completed.index_paths, self._snapshots.write(base_offset, self.producer_state)])
        segment = Segment.create(self._disk, self.path, base_offset, self.config, self._cache, now_ms=now_ms)
        completed.unpin_indexes()
        completed.file.trim()
        self._segments.add(segment)
        self._recent.clear()
        self._flush_state.created_file()
        if self.on_roll is not None:
            self.on_roll(self)
        return segment

    # Reading

    def read(
        self, offset: int, max_bytes: int, *, upper: LogPosition | None = None, min_one_batch: bool = True
    ) -> FileSlice | None:
        """Batches from the one that holds `offset` on: a slice of one segment, of at most `max_bytes`, below `upper`.

        None when there is nothing below `upper` (by default the log's end), or when not even the first batch fits and
        `min_one_batch` does not ask for it anyway. The slice may end within a batch. NotCheckedError when it has to be
        checked first, DamagedBatchError when it was and the first batch is damaged.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.path} holds offsets {self.start_offset} to {self.end_offset}, not {offset}",
            )
        if upper is None:
            upper = self.end
        if offset >= upper.offset:
            if offset == self.end_offset:
                # Whoever waits for the next batch will come back for it.
                self._recent.remember(offset, self._segments.active.size)
            return None
        segments = self._segments
        segment, position = self._locate(offset)
        limit = segment.size
        if upper.segment_base <= segment.base_offset:
            # Compaction may have made the segment shorter than it was when `upper` was found.
            limit = min(upper.position, segment.size) if upper.segment_base == segment.base_offset else 0
        size = limit - position
        if size <= 0:
            return None
        if position < segment.unchecked_end:
            end_offset = segments.base_after(segment, self.end_offset)
            size = segment.intact_size(position, size, offset, max_bytes, limit=end_offset, epochs=self.epochs)
        if size > max_bytes:
            first_size = segment.batch_size_at(position)
            if first_size <= max_bytes:
                size = max_bytes
            elif min_one_batch:
                size = min(size, first_size)
            else:
                return None
        elif position + size == limit and upper.segment_base == segment.base_offset == segments.active.base_offset:
            # The next read of whoever got this begins where it ended.
            self._recent.remember(upper.offset, limit)
        return FileSlice(segment.file, position, size)

    def position_of(self, offset: int) -> LogPosition:
        """Where the batch that holds `offset`, or the first one after it, begins; the end for the end offset."""
        assert self.start_offset <= offset <= self.end_offset, f"{offset} is not in {self}"
        if offset == self.end_offset:
            return self.end
        segment, position = self._locate(offset)
        return LogPosition(offset, segment.base_offset, position)

    def _locate(self, offset: int) -> tuple[Segment, int]:
        """The segment and position of the first batch that ends at or after `offset`, which is below the end."""
        position = self._recent.find(offset)
        return self._segments.find(offset) if position is None else (self._segments.active, position)

    def find_timestamp(self, timestamp: int, searched: TimeSearch | None = None) -> TimestampedOffset | None:
        """The first record whose timestamp is `timestamp` or later, and the epoch it was written in.

        LongSearchError when that takes a job first; see `quire.storage.time_search`.
        """
        return timestamp_lookup.first_at_or_after(self._segments, timestamp, self.start_offset, searched)

    def find_max_timestamp(self, searched: TimeSearch | None = None) -> TimestampedOffset | None:
        """The first record with the highest timestamp; None when no record has one. LongSearchError as above."""
        return timestamp_lookup.highest(self._segments, self.start_offset, searched)

    # Epochs and producers

    def assign_epoch(self, leader_epoch: int) -> None:
        """From the end of the log on, `leader_epoch` writes."""
        self.epochs.assign(leader_epoch, self.end_offset)

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        """The newest epoch at or below `leader_epoch` and the offset where it ends; (-1, -1) when unknown."""
        return self.epochs.end_offset_for(leader_epoch, self.end_offset)

    def check_producer(self, header: BatchHeader, *, from_zero: bool = False) -> RememberedBatch | None:
        """None if a producer's batch may be appended, the original if it was before; ApiError if it must not be."""
        return self.producer_state.check(header, from_zero=from_zero) if header.producer_id >= 0 else None

    def producers(self) -> list[ProducerEntry]:
        return list(self.producer_state)

    def aborted_transactions(self, offset: int, part: FileSlice | None = None) -> list[AbortedTransaction]:
        """The aborted transactions that `part` (or else the log), read from `offset` on, may have records of."""
        return aborted_in(self._segments, self._snapshots, offset, part, self.end_offset)

    # Cutting

    def find_expired(self, high_watermark: int, now_ms: int) -> Expired | None:
        """The oldest segments that the topic's retention settings want to be dropped; None when there are none."""
        return retention.find_expired(
            list(self._segments),
            self.config,
            end_offset=self.end_offset,
            high_watermark=high_watermark,
            now_ms=now_ms,
        )

    def delete_records_before(self, offset: int) -> None:
        """Moves the start of the log to `offset`; segments that lie before it altogether go.

        Oldest first, so that a crash leaves a log without holes. Where it then starts is in the directory's checkpoint
        or, if that is older, at the first segment that is left.
        """
        assert self.start_offset <= offset <= self.end_offset, f"{self} cannot start at {offset}"
        self.start_offset = offset
        self.epochs.truncate_from_start(offset)
        self._retire(self._segments.drop_before(offset))
        self._snapshots.remove_before(self._segments[0].base_offset)

    def truncate_to(self, offset: int) -> None:
        """Drops everything from `offset` on, and the batch that holds it.

        On a node `LogDirectory.truncate` does it, because the checkpoint has to take back the recovery point first. The
        newest segments go first, so that a crash leaves a prefix, at worst a longer one.
        """
        if offset >= self.end_offset:
            return
        if offset <= self.start_offset:
            self.truncate_fully_and_start_at(offset)
            return
        self._recent.clear()
        self._retire(self._segments.drop_from(offset))
        self._flush_state.truncated(self.recovery_point_if_truncated_to(offset))
        self.end_offset = max(self._segments.active.truncate_to(offset), self.start_offset)
        self.epochs.truncate_from_end(self.end_offset)
        self._snapshots.remove_after(self.end_offset)
        if len(self.producer_state):
            self.producer_state = replay_producers(
                self._segments, self._snapshots, self._segments[0].base_offset, self.end_offset
            )

    def replace_segments(self, old: list[Segment], size: int) -> bool:
        """Puts what compaction has left of neighbouring segments, `size` bytes, in their place (see `cleaning.swap`).

        False if some of them are gone by now. An OSError leaves a log that only the next start puts in order.
        """
        base, now_ms = old[0].base_offset, old[-1].created_ms
        new = Segment(self._disk, self.path, base, self.config, self._cache, now_ms=now_ms, size=size)
        new.unchecked_end = 0  # It was written by this process.
        if not self._segments.replace(old, new):
            return False
        swap_in(self._disk, self.path, base, lambda: self._retire(old))
        self._snapshots.remove_at([segment.base_offset for segment in old[1:]])
        self._flush_state.created_file()
        return True

    def recovery_point_if_truncated_to(self, offset: int) -> int:
        """Where a scan has to begin after a crash that may undo the truncation of a file: with that whole segment."""
        return min(self.recovery_point, offset, self._segments[self._segments.slot_of(offset - 1)].base_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drops everything; the log goes on, empty, at `offset`. A crash in between leaves a prefix of it."""
        created_ms = self._segments.active.created_ms
        self._recent.clear()
        self._retire(list(self._segments)[::-1])
        self._segments.replace_all(
            Segment.create(self._disk, self.path, offset, self.config, self._cache, now_ms=created_ms)
        )
        self.start_offset = self.end_offset = offset
        # Not `offset` itself: until the next flush a crash may bring the old segments back, whose end was never synced.
        self._flush_state.truncated(min(self.recovery_point, offset))
        self._flush_state.created_file()
        self.epochs.clear()
        self._snapshots.remove_all()
        self.producer_state = ProducerState()

    def _retire(self, segments: list[Segment]) -> None:
        if segments:
            self._remove_retired(RetiredSegments(self._disk, segments), self.config.file_delete_delay_ms)

    # Flushing and closing

    def start_flush(self, up_to: int | None = None) -> FlushPlan | None:
        """What has to be synced so that everything below `up_to` (by default all) is durable; None if nothing has.

        See `quire.storage.log_flush`. Until `finish_flush` or `fail_flush` there is no second plan.
        """
        up_to = self.end_offset if up_to is None else min(up_to, self.end_offset)
        if up_to == self.end_offset:  # Where a high watermark that waits for this flush will stand.
            self._recent.remember(up_to, self._segments.active.size)
        return self._flush_state.start(self._disk, self.path, self._segments, self.epochs.to_bytes(), up_to)

    def sync_with_next_flush(self, path: str) -> None:
        """A file beside the segments that must be durable before anything in the log counts as such."""
        self._flush_state.wrote_beside(path)

    def finish_flush(self, plan: FlushPlan) -> None:
        """The plan has run: what it covered is durable."""
        self._flush_state.finish(plan)

    def fail_flush(self) -> None:
        """The plan did not run to its end: what it covered may or may not be durable, and counts as not."""
        self._flush_state.end()

    def sync_completed(self) -> None:
        """Blocks until the batches of all segments before the active one are on disk; what is beside them is not."""
        for segment in self._segments.between(self.recovery_point, self._segments.active.base_offset):
            segment.file.sync()

    @property
    def flushing(self) -> bool:
        return self._flush_state.flushing

    def flush(self) -> None:
        """All of it at once, blocking: for opening, closing, tools and tests."""
        plan = self.start_flush()
        if plan is not None:
            self._flush_state.run_now(plan)

    def write_last_files(self) -> None:
        """Writes what a clean stop leaves beside the batches: indexes, and producers if there are any.

        Before `close`, which does it too; a flush in between then leaves `close` nothing to wait for.
        """
        active = self._segments.active
        if active.save_indexes():
            # Without an offset entry a clean start reads the whole segment, and needs neither index into it to be
            # right; but it takes the word of that of aborted transactions.
            paths = active.index_paths
            self._flush_state.wrote(paths if active.offset_index.count else paths[2:])
        if (len(self.producer_state) or self._snapshots.offsets) and self.end_offset not in self._snapshots.offsets:
            self._flush_state.wrote([self._snapshots.write(self.end_offset, self.producer_state)])
        self.epochs.truncate_from_end(self.end_offset)

    def close(self) -> None:
        """Makes everything durable and closes the files; after this the log may be opened as clean.

        A crash at any point leaves what a crash without closing would: the clean-shutdown mark comes later.
        """
        self._flush_state.end()
        self.write_last_files()
        self.flush()
        self.close_files()

    def close_files(self) -> None:
        """Closes the files and nothing more: for a log that is being deleted or whose disk failed."""
        self.closed = True
        self._flush_state.end()
        for segment in self._segments:
            segment.close()
