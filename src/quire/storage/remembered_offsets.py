"""What a data directory remembers of its logs from one run to the next: up to where each is on disk, where it starts,
up to where it may be read, and how far it is compacted.

There is a checkpoint file for each. Of logs that are not open (yet), what was known of them stays known. Of a log that
is gone nothing is: before another one of the same name is created, all files are written without the old one, for good.
A new log that took over an old start offset would be found too short after a crash, and emptied.
"""

from collections.abc import Callable, Mapping, Sequence

from quire.seams import Disk, Jobs
from quire.storage import checkpoints
from quire.storage.checkpoint_writer import CheckpointWriter
from quire.storage.checkpoints import TopicPartition, read_if_sensible
from quire.storage.cleaning.cleaned_offsets import CleanedOffsets
from quire.storage.gap_mark import MARK, with_mark, without_mark
from quire.storage.log import Log

_GONE_MAX = 10_000
"""How many names of logs that are gone are kept before the files are written without them, asked for or not."""

_RESERVE_BYTES = 64 << 10
"""Where logs start has to be written before their segments are deleted, most of all when the disk is full."""


class RememberedOffsets:
    """`LogDirectory`'s: `logs` are its open logs, as they come and go."""

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
        """What even a power cut leaves in the file, or less than that."""
        self._times_taken_back = 0
        self.is_foreign = True
        """Written by Apache Kafka, as far as anybody knows; see `quire.storage.gap_mark`."""
        self._start_offsets_known: dict[TopicPartition, int] = {}
        self._recovery_points = CheckpointWriter(disk, jobs, f"{path}/{checkpoints.RECOVERY_POINTS}", failed)
        self._start_offsets = CheckpointWriter(
            disk, jobs, f"{path}/{checkpoints.LOG_START_OFFSETS}", failed, reserve_bytes=_RESERVE_BYTES
        )
        self._high_watermarks = CheckpointWriter(disk, jobs, f"{path}/{checkpoints.HIGH_WATERMARKS}", failed)
        self._coming_start_offsets: dict[TopicPartition, int] = {}
        """Where logs will start once the checkpoint says so."""
        self._waiting_for_starts: list[Callable[[], None]] = []
        self._saving_starts = False
        self.cleaned_offsets = CleanedOffsets(disk, jobs, path, failed)
        self._gone: dict[TopicPartition, None] = {}
        """Logs that are gone but may still be named in the files."""

    def read(self) -> None:
        """What the last run left."""
        self._recovery_points_known = read_if_sensible(self._disk, f"{self._path}/{checkpoints.RECOVERY_POINTS}")
        marked = without_mark(self._recovery_points_known)
        self.is_foreign = not (marked and MARK in self._read_high_watermarks())
        self._start_offsets_known = read_if_sensible(self._disk, f"{self._path}/{checkpoints.LOG_START_OFFSETS}")
        self.cleaned_offsets.read()

    def recovery_point(self, key: TopicPartition) -> int:
        return self._recovery_points_known.get(key, 0)

    def certain_recovery_point(self, key: TopicPartition) -> int:
        """What the file has, whatever happens: at most the log's own."""
        return self._recovery_points_certain.get(key, 0)

    def start_offset(self, key: TopicPartition) -> int:
        return self._start_offsets_known.get(key, 0)

    def forget(self, key: TopicPartition) -> None:
        """The log is gone. The files follow when they are next written, or when they have to."""
        self._recovery_points_known.pop(key, None)
        self._start_offsets_known.pop(key, None)
        self._coming_start_offsets.pop(key, None)
        self.cleaned_offsets.forget(key)
        self._gone[key] = None

    def make_way_for(self, key: TopicPartition) -> None:
        """Before a log of this name is created. Blocks if there was one, but only for the first of many."""
        known = (self._recovery_points_known, self._start_offsets_known, self.cleaned_offsets)
        if any(key in offsets for offsets in known):
            self.forget(key)
        if key in self._gone or len(self._gone) > _GONE_MAX:
            self.save_now()

    def save_soon(self) -> None:
        self.save_recovery_points_soon()
        self._start_offsets.save_soon(self._start_offsets_now())

    def save_recovery_points_soon(self) -> None:
        points, times_taken_back = self._recovery_points_now(), self._times_taken_back

        def saved() -> None:
            if times_taken_back == self._times_taken_back:
                self._recovery_points_certain = points

        self._recovery_points.save_soon(points, saved if points != self._recovery_points_certain else None)

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
        self._gone.clear()

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """As the file has them."""
        offsets = self._read_high_watermarks()
        without_mark(offsets)
        return offsets

    def _read_high_watermarks(self) -> dict[TopicPartition, int]:
        return read_if_sensible(self._disk, f"{self._path}/{checkpoints.HIGH_WATERMARKS}")

    def save_high_watermarks_soon(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._high_watermarks.save_soon(offsets if self.is_foreign else with_mark(offsets))

    def take_over(self) -> None:
        """Blocks until the directory is marked as written by Quire alone. No open log lacks anything but below what it
        has on disk, and there is no other log.

        A crash before both files have the mark leaves the directory another's, and nothing in it has changed.
        """
        self._high_watermarks.save_now(with_mark(self.high_watermarks()))
        self.is_foreign = False
        self._save_recovery_points_now(self._recovery_points_now())

    def take_back(self, cuts: Sequence[tuple[Log, int, int]]) -> None:
        """Blocks until the files claim nothing of logs that will be cut: (log, its recovery point then, its end then).

        Nor that one of them starts after its end, as one that is emptied may: a crash would otherwise find what is
        appended there before the log's start, and drop it.
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
        if lower:
            for key in lower:
                self._coming_start_offsets.pop(key, None)
            self._start_offsets.save_now(starts | lower)

    def will_start_at(self, key: TopicPartition, offset: int, then: Callable[[], None]) -> None:
        """Calls `then` when the file has this start, or a later one, for good."""
        self._coming_start_offsets[key] = max(offset, self._coming_start_offsets.get(key, 0))
        self._waiting_for_starts.append(then)
        if not self._saving_starts:
            self._save_coming_starts()

    def _save_coming_starts(self) -> None:
        """One write at a time: who comes meanwhile shares the next one with everybody else who does."""
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
        """Whether the log will start there, or even later, as soon as the file says so."""
        return self._coming_start_offsets.get(key, -1) >= offset

    def has_started(self, key: TopicPartition) -> None:
        """The log itself has moved its start: what was to come may have come."""
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
