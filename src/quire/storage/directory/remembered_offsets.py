"""The offsets that a data directory keeps for its logs across restarts: recovery point, log start offset, high
watermark, and how far the log is compacted.

There is a checkpoint file for each. Entries of logs that are not open yet are kept. Entries of a deleted log are
removed from all files, durably, before another log of the same name is created: if a new log had an old start offset, a
start after a crash would find it too short and empty it.
"""

from collections.abc import Callable, Mapping, Sequence

from quire.seams import Disk, Jobs
from quire.storage.cleaning.cleaned_offsets import CleanedOffsets
from quire.storage.directory import checkpoints
from quire.storage.directory.checkpoint_writer import CheckpointWriter
from quire.storage.directory.checkpoints import TopicPartition, read_if_sensible
from quire.storage.log import Log
from quire.storage.recovery.gap_mark import with_mark, without_mark

_GONE_MAX = 10_000
"""After so many deleted logs the files are written without them, even if nothing else requires it."""

_RESERVE_BYTES = 64 << 10
"""Start offsets must be written before segments are deleted, which is most important when the disk is full."""


class RememberedOffsets:
    """Part of `LogDirectory`, which changes `logs`, its open logs."""

    def __init__(
        self,
        disk: Disk,
        jobs: Jobs,
        path: str,
        logs: Mapping[TopicPartition, Log],
        failed: Callable[[Exception], None],
    ) -> None:
        self._disk = disk
        self._path = path
        self._logs = logs
        self._recovery_points_known: dict[TopicPartition, int] = {}
        self._recovery_points_certain: Mapping[TopicPartition, int] = {}
        """Recovery points that are in the file on disk, or lower ones."""
        self._times_taken_back = 0
        self.is_foreign = True
        """Whether Apache Kafka may have written the directory; see `quire.storage.recovery.gap_mark`."""
        self._start_offsets_known: dict[TopicPartition, int] = {}
        self._recovery_points = CheckpointWriter(disk, jobs, f"{path}/{checkpoints.RECOVERY_POINTS}", failed)
        self._start_offsets = CheckpointWriter(
            disk, jobs, f"{path}/{checkpoints.LOG_START_OFFSETS}", failed, reserve_bytes=_RESERVE_BYTES
        )
        self._high_watermarks = CheckpointWriter(disk, jobs, f"{path}/{checkpoints.HIGH_WATERMARKS}", failed)
        self._high_watermarks_known: dict[TopicPartition, int] = {}
        """As the last process left them, for logs that are not open yet."""
        self._high_watermarks_saved: dict[TopicPartition, int] = {}
        """In the file on disk, or lower ones that are being written."""
        self._coming_start_offsets: dict[TopicPartition, int] = {}
        """Start offsets that take effect once they are in the checkpoint."""
        self._waiting_for_starts: list[Callable[[], None]] = []
        self._saving_starts = False
        self.cleaned_offsets = CleanedOffsets(disk, jobs, path, failed)
        self._gone: dict[TopicPartition, None] = {}
        """Deleted logs that may still have entries in the files."""

    def read(self) -> None:
        """Reads the files that the last process left."""
        self._recovery_points_known = read_if_sensible(self._disk, f"{self._path}/{checkpoints.RECOVERY_POINTS}")
        marked = without_mark(self._recovery_points_known)
        self._high_watermarks_known = self._read_high_watermarks()
        self.is_foreign = not (without_mark(self._high_watermarks_known) and marked)
        self._high_watermarks_saved = self._high_watermarks_known.copy()
        self._start_offsets_known = read_if_sensible(self._disk, f"{self._path}/{checkpoints.LOG_START_OFFSETS}")
        self.cleaned_offsets.read()

    def recovery_point(self, key: TopicPartition) -> int:
        return self._recovery_points_known.get(key, 0)

    def certain_recovery_point(self, key: TopicPartition) -> int:
        """The recovery point that is in the file on disk; at most the log's own."""
        return self._recovery_points_certain.get(key, 0)

    def start_offset(self, key: TopicPartition) -> int:
        return self._start_offsets_known.get(key, 0)

    def high_watermark(self, key: TopicPartition) -> int:
        return self._high_watermarks_known.get(key, 0)

    def forget(self, key: TopicPartition) -> None:
        """The log was deleted. Its entries are removed when the files are written next."""
        self._high_watermarks_known.pop(key, None)
        self._recovery_points_known.pop(key, None)
        self._start_offsets_known.pop(key, None)
        self._coming_start_offsets.pop(key, None)
        self.cleaned_offsets.forget(key)
        self._gone[key] = None

    def make_way_for(self, key: TopicPartition) -> None:
        """Called before a log of this name is created. Blocks if there was one before, once for many deleted logs."""
        known = (
            self._recovery_points_known,
            self._start_offsets_known,
            self._high_watermarks_saved,
            self.cleaned_offsets,
        )
        if any(key in offsets for offsets in known):
            self.forget(key)
        if key in self._gone or len(self._gone) > _GONE_MAX:
            self.save_now()

    def save_soon(self) -> None:
        self.save_recovery_points_soon()
        self._start_offsets.save_soon(self._start_offsets_now())

    def save_recovery_points_soon(self, then: Callable[[], None] | None = None) -> None:
        """Calls `then` when they are on disk."""
        points, times_taken_back = self._recovery_points_now(), self._times_taken_back

        def saved() -> None:
            if times_taken_back == self._times_taken_back:
                self._recovery_points_certain = points
            if then is not None:
                then()

        is_new = points != self._recovery_points_certain
        self._recovery_points.save_soon(points, saved if is_new or then is not None else None)

    def _save_recovery_points_now(self, points: Mapping[TopicPartition, int]) -> None:
        self._times_taken_back += 1
        self._recovery_points_certain = {}
        self._recovery_points.save_now(points)
        self._recovery_points_certain = points

    def save_now(self) -> None:
        """Blocks until all files are on disk."""
        self._save_recovery_points_now(self._recovery_points_now())
        self._start_offsets.save_now(self._start_offsets_now())
        self.cleaned_offsets.save_now()
        if any(key in self._high_watermarks_saved for key in self._gone):
            kept = {key: each for key, each in self._high_watermarks_saved.items() if key not in self._gone}
            self._save_high_watermarks_now(kept)
        self._gone.clear()

    def finish(self) -> None:
        """Saves everything a last time. Blocks; jobs must have ended."""
        self.save_now()
        self._high_watermarks.finish()

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """The high watermarks in the file."""
        offsets = self._read_high_watermarks()
        without_mark(offsets)
        return offsets

    def _read_high_watermarks(self) -> dict[TopicPartition, int]:
        return read_if_sensible(self._disk, f"{self._path}/{checkpoints.HIGH_WATERMARKS}")

    def lower_high_watermarks(self, ends: Mapping[TopicPartition, int]) -> None:
        """The logs end, or are about to end, at these offsets. Blocks until the file has no high watermark above them.

        What was committed beyond is lost here. If it is lost everywhere, other records come in its place, and a start
        after a crash would take these for committed.
        """
        saved = self._high_watermarks_saved
        lower = {key: end_offset for key, end_offset in ends.items() if end_offset < saved.get(key, 0)}
        if lower:
            self._save_high_watermarks_now(saved | lower)

    def _save_high_watermarks_now(self, offsets: dict[TopicPartition, int]) -> None:
        self._high_watermarks.save_now(offsets if self.is_foreign else with_mark(offsets))
        self._high_watermarks_saved = offsets

    def save_high_watermarks_soon(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._high_watermarks_saved = dict(offsets)
        self._high_watermarks.save_soon(offsets if self.is_foreign else with_mark(offsets))

    def take_over(self) -> None:
        """Marks the directory as written by Quire alone (see `gap_mark`), and blocks until the marks are on disk.

        All logs must be open, and no gap may be beyond the recovery point of its log. After a crash before both files
        have the mark, the directory counts as Kafka's, as before.
        """
        self._high_watermarks.save_now(with_mark(self.high_watermarks()))
        self.is_foreign = False
        self._save_recovery_points_now(self._recovery_points_now())

    def take_back(self, cuts: Sequence[tuple[Log, int, int]]) -> None:
        """Called before logs are truncated: (log, new recovery point, new end). Blocks until the files have no more.

        The start offset of a log must not be above its new end either. After a crash, records that were appended there
        would be before the log's start, and would be dropped.
        """
        key_of = {log: key for key, log in self._logs.items()}
        points, starts = self._recovery_points_now(), self._start_offsets_now()
        lower: dict[TopicPartition, int] = {}
        for log, point, end_offset in cuts:
            key = key_of[log]
            points[key] = min(points[key], point)
            self.cleaned_offsets.truncated(key, point)
            if end_offset < starts.get(key, 0):
                lower[key] = end_offset
        self._save_recovery_points_now(points)
        self.lower_high_watermarks({key_of[log]: end_offset for log, _, end_offset in cuts})
        if lower:
            for key in lower:
                self._coming_start_offsets.pop(key, None)
            self._start_offsets.save_now(starts | lower)

    def will_start_at(self, key: TopicPartition, offset: int, then: Callable[[], None]) -> None:
        """Calls `then` when the file on disk has this start offset or a higher one."""
        self._coming_start_offsets[key] = max(offset, self._coming_start_offsets.get(key, 0))
        self._waiting_for_starts.append(then)
        if not self._saving_starts:
            self._save_coming_starts()

    def save_start_now(self, key: TopicPartition, offset: int) -> None:
        """Blocks until the file has this start offset."""
        self._start_offsets.save_now(self._start_offsets_now() | {key: offset})

    def _save_coming_starts(self) -> None:
        """Writes the file, one write at a time; requests that arrive meanwhile share the next one."""
        waiting, self._waiting_for_starts = self._waiting_for_starts, []
        self._saving_starts = True

        def saved() -> None:
            self._saving_starts = False
            if self._waiting_for_starts:
                self._save_coming_starts()
            for then in waiting:
                then()

        self._start_offsets.save_soon(self._start_offsets_now(), saved)

    def is_to_start_at(self, key: TopicPartition, offset: int) -> bool:
        """Whether the log will start at `offset` or later once the file is written."""
        return self._coming_start_offsets.get(key, -1) >= offset

    def has_started(self, key: TopicPartition) -> None:
        """The log has moved its start, possibly as far as requested."""
        if self._coming_start_offsets.get(key, 0) <= self._logs[key].start_offset:
            self._coming_start_offsets.pop(key, None)

    def _recovery_points_now(self) -> dict[TopicPartition, int]:
        points = {**self._recovery_points_known, **{key: log.recovery_point for key, log in self._logs.items()}}
        return points if self.is_foreign else with_mark(points)

    def _start_offsets_now(self) -> dict[TopicPartition, int]:
        started = {**self._start_offsets_known, **{key: log.start_offset for key, log in self._logs.items()}}
        for key, offset in self._coming_start_offsets.items():
            started[key] = max(offset, started.get(key, 0))
        return {key: offset for key, offset in started.items() if offset > 0}
