"""The cleaners of a node: they choose the dirtiest compacted log, clean it step by step in jobs, and choose again.

Each of `log.cleaner.threads` cleaners has one log at a time. The event loop chooses the log and the range, replaces
segments and updates the checkpoint. Jobs read, filter and write. Each job handles a few megabytes, so that cleaning can
be stopped quickly and kept below `log.cleaner.io.max.bytes.per.second`.

A damaged log is reported once and not cleaned until it is repaired, or until the next start; the others are. If a log
is deleted, or segments of it are, while it is cleaned, the cleaned copies are removed. A repair writes to the same
names as a cleaner, so it takes the log over meanwhile (`lend`).
"""

import errno
import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from quire.protocol.errors import ApiError
from quire.seams import Clock, Disk, Jobs, Random
from quire.seams.clock import Timer
from quire.storage.cleaning.cleanable import Cleanable, active_is_overdue, cleanable, dirtiest
from quire.storage.cleaning.cleaning_run import CleaningRun, Limits
from quire.storage.cleaning.throttle import Throttle
from quire.storage.cleaning.work import Cleaned, Progress, Ready, Work, Worked
from quire.storage.directory.checkpoints import TopicPartition
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.errors import is_shortage
from quire.storage.log import Log
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.range_check import NotCheckedError, ReadCheck

STEP_BYTES = 8 << 20
"""About how much one job reads and writes."""

_log = logging.getLogger("quire.cleaner")


class Settings(NamedTuple):
    enabled: bool = True
    threads: int = 1
    backoff_ms: int = 15_000
    table_bytes: int = 128 << 20
    """For all cleaners together. Allocated while cleaning, and only as much as the dirty part needs."""
    table_load_factor: float = 0.9
    buffer_bytes: int = 1 << 20
    bytes_per_second: float = float("inf")
    decompressed_bytes: int = 128 << 20


class Candidate(NamedTuple):
    """A log that may be cleaned, and the offset up to which its records are committed and decided."""

    directory: LogDirectory
    key: TopicPartition
    log: Log
    stable_offset: int


def settled_offset(candidate: Candidate) -> int:
    """The offset up to which a log may be cleaned: at most the recovery point in the checkpoint (see `gap_mark`)."""
    return min(candidate.stable_offset, candidate.directory.certain_recovery_point(candidate.key))


class Cleaner:
    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        jobs: Jobs,
        random: Random,
        settings: Callable[[], Settings],
        candidates: Callable[[], Iterable[Candidate]],
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._jobs = jobs
        self._random = random
        self._settings = settings
        self._candidates = candidates
        self._throttle = Throttle(clock)
        self._timer: Timer | None = None
        self._under_way: dict[str, Cleaning] = {}
        """By folder: a log that replaces a deleted one of the same name waits until no job writes to its folder."""
        self._lent: dict[str, None] = {}
        """By folder: logs whose segments a repair replaces."""
        self._prepared: dict[Log, None] = {}
        """Logs of which a job rebuilds an index."""
        self._uncleanable: dict[Log, None] = {}
        self._stopped = False
        self.damaged: Callable[[Candidate, DamagedBatchError], None] = lambda candidate, damage: None
        """Called when a log cannot be cleaned because of a damaged batch."""

    def start(self) -> None:
        self._start_due_runs()

    def stop(self) -> None:
        """Begins no more work. A job may still be running."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        """Discards incomplete work. Jobs must have ended."""
        self.stop()
        for cleaning in self._under_way.values():
            cleaning.drop()
        self._under_way.clear()

    def lend(self, log: Log) -> bool:
        """Leaves the log to the caller until `take_back`; False if it is being cleaned."""
        if log.path in self._under_way or log.path in self._lent:
            return False
        self._lent[log.path] = None
        return True

    def take_back(self, log: Log, folder: str) -> None:
        """The caller of `lend` is done. If the log was damaged, that may be over. `folder` is where it was then."""
        del self._lent[folder]
        self._uncleanable.pop(log, None)

    # --- Choosing

    def _start_due_runs(self) -> None:
        """Starts a run for every idle cleaner, if a log is due; looks again after `log.cleaner.backoff.ms`."""
        if self._stopped:
            return
        if self._timer is not None:
            self._timer.cancel()
        settings = self._settings()
        self._timer = self._clock.call_later(settings.backoff_ms, self._start_due_runs)
        if not settings.enabled:
            return
        while len(self._under_way) < settings.threads:
            found = dirtiest(self._due())
            if found is None:
                return
            try:
                self._begin(*found, settings)
            except NotCheckedError as error:
                self._prepare(found[0], error.check)

    def _due(self) -> list[tuple[Candidate, Cleanable]]:
        now_ms = self._clock.now_ms()
        due = []
        lagging: dict[LogDirectory, None] = {}
        # As a list: rolling a log may take its directory offline, which changes the candidates.
        for candidate in list(self._candidates()):
            directory, key, log, stable_offset = candidate
            busy = log.path in self._under_way or log.path in self._lent or log in self._prepared
            idle = not (busy or log in self._uncleanable)
            if not (idle and log.config.compact and not log.closed and directory.failure is None):
                continue
            try:
                if active_is_overdue(log, now_ms):
                    log.roll(now_ms)
                found = cleanable(log, directory.cleaned_offsets.get(key), settled_offset(candidate), now_ms)
            except OSError as error:
                directory.fail(error)
            except NotCheckedError as error:
                self._prepare(candidate, error.check)
            except ApiError as error:
                self._give_up(candidate, error)
            else:
                if found.is_due(log.config.min_cleanable_dirty_ratio):
                    due.append((candidate, found))
                if settled_offset(candidate) < min(stable_offset, log.recovery_point, log.end.segment_base):
                    lagging[directory] = None
        for directory in lagging:
            # So that the next look can clean what this one could not.
            directory.checkpoint_recovery_points()
        return due

    def _prepare(self, candidate: Candidate, check: ReadCheck) -> None:
        """A job rebuilds a wrong index of the log; a later look cleans it."""
        self._prepared[candidate.log] = None
        candidate.directory.checker.check(check, lambda: self._prepared.pop(candidate.log, None))

    # --- Cleaning

    def _begin(self, candidate: Candidate, dirty: Cleanable, settings: Settings) -> None:
        log = candidate.log
        limits = Limits(
            settings.table_bytes // settings.threads,
            settings.table_load_factor,
            settings.buffer_bytes,
            settings.decompressed_bytes,
        )
        run = CleaningRun(log, dirty, limits, self._random.random_bytes(16), self._clock.now_ms())
        cleaning = Cleaning(candidate, run, Work(self._disk, run), self._clock.monotonic_ms())
        self._under_way[log.path] = cleaning
        self._step(cleaning)

    def _step(self, cleaning: "Cleaning") -> None:
        if self._stopped:
            return
        cleaning.step_begun_ms = self._clock.monotonic_ms()
        step_bytes = int(min(STEP_BYTES, max(self._settings().bytes_per_second / 4, 1)))
        self._jobs.submit(
            lambda: cleaning.work(step_bytes),
            lambda progress: self._job_done(cleaning, progress),
            lambda error: self._failed(cleaning, error),
        )

    def _job_done(self, cleaning: "Cleaning", progress: Progress) -> None:
        if self._stopped:
            return
        if not cleaning.is_of_use():
            self._end(cleaning)
        elif isinstance(progress, Worked):
            rate = self._settings().bytes_per_second
            delay_ms = self._throttle.delay_ms(progress.size_bytes, rate, cleaning.step_begun_ms)
            if delay_ms > 0:
                self._clock.call_later(delay_ms, lambda: self._step(cleaning))
            else:
                self._step(cleaning)
        elif isinstance(progress, Ready):
            self._swap(cleaning, progress)
        else:
            self._finish(cleaning, progress)

    def _swap(self, cleaning: "Cleaning", ready: Ready) -> None:
        candidate, old = cleaning.candidate, cleaning.run.segments[ready.start : ready.stop]
        size_before = sum(segment.size for segment in old)
        try:
            swapped = candidate.log.replace_segments(old, ready.cleaned.size)
        except OSError as error:
            # Some files are renamed and some are not. Only a start can repair that, even if the disk was merely full.
            lasting = OSError(errno.EIO, f"segments could not be replaced ({error.strerror})", error.filename)
            candidate.directory.fail(lasting if is_shortage(error) else error)
            swapped = False
        if not swapped:
            self._end(cleaning)
            return
        cleaning.slots_done = ready.stop
        cleaning.bytes_before += size_before
        cleaning.bytes_after += ready.cleaned.size
        self._step(cleaning)

    def _finish(self, cleaning: "Cleaning", cleaned: Cleaned) -> None:
        directory, key, log, _ = cleaning.candidate
        directory.cleaned_offsets.is_clean_before(key, cleaned.end_offset)
        took_ms = self._clock.monotonic_ms() - cleaning.begun_ms
        _log.info(
            "compacted %s-%d up to offset %d: %d bytes became %d in %d ms",
            *key,
            cleaned.end_offset,
            cleaning.bytes_before,
            cleaning.bytes_after,
            took_ms,
        )
        if cleaned.end_offset < cleaning.run.first_uncleanable_offset and log.config.compact:
            # Not all keys fitted into memory: clean the same log again, with the next keys.
            cleaning.drop()
            try:
                rest = cleanable(log, cleaned.end_offset, settled_offset(cleaning.candidate), self._clock.now_ms())
                self._begin(cleaning.candidate, rest, self._settings())
            except NotCheckedError as error:
                self._prepare(cleaning.candidate, error.check)
                self._end(cleaning)
            except (OSError, ApiError) as error:
                self._failed(cleaning, error)
        else:
            self._end(cleaning)

    def _failed(self, cleaning: "Cleaning", error: Exception) -> None:
        if self._stopped:
            return
        directory = cleaning.candidate.directory
        if not cleaning.is_of_that_log() or not cleaning.is_current():
            # The segment was deleted in the meantime.
            pass
        elif isinstance(error, OSError):
            directory.fail(error)
        else:
            self._give_up(cleaning.candidate, error)
        self._end(cleaning, look_again=not is_shortage(error))

    def _give_up(self, candidate: Candidate, error: Exception) -> None:
        log = candidate.log
        self._uncleanable[log] = None
        _log.error("%s will not be compacted until the next start, unless it is repaired: %s", log.path, error)
        if isinstance(error, DamagedBatchError):
            self.damaged(candidate, error)

    def _end(self, cleaning: "Cleaning", *, look_again: bool = True) -> None:
        cleaning.drop()
        del self._under_way[cleaning.run.folder]
        if look_again:
            self._start_due_runs()


class Cleaning:
    """The state of one log that is being cleaned."""

    __slots__ = (
        "_bytes_unreported",
        "_work",
        "begun_ms",
        "bytes_after",
        "bytes_before",
        "candidate",
        "run",
        "slots_done",
        "step_begun_ms",
    )

    def __init__(self, candidate: Candidate, run: CleaningRun, work: Work, begun_ms: float) -> None:
        self.candidate = candidate
        self.run = run
        self._work = work
        self._bytes_unreported = 0
        self.begun_ms = self.step_begun_ms = begun_ms
        self.slots_done = 0
        """How many of the run's segments have been replaced."""
        self.bytes_before = 0
        self.bytes_after = 0

    def work(self, step_bytes: int) -> Progress:
        """Works for about `step_bytes`, or until the event loop has to decide something. In a job, one at a time."""
        while isinstance(progress := self._work.step(), Worked):
            self._bytes_unreported += progress.size_bytes
            if self._bytes_unreported >= step_bytes:
                size_bytes, self._bytes_unreported = self._bytes_unreported, 0
                return Worked(size_bytes)
        return progress

    def is_of_use(self) -> bool:
        return self.is_of_that_log() and self.candidate.directory.failure is None

    def is_of_that_log(self) -> bool:
        """Whether the log is open and was not truncated: truncated records must not reappear, nor count as clean."""
        log = self.candidate.log
        return not log.closed and log.truncations == self.run.truncations

    def is_current(self) -> bool:
        """Whether all segments that the run has not replaced yet are still in the log."""
        there = self.candidate.log.segments
        return all(any(each is segment for each in there) for segment in self.run.segments[self.slots_done :])

    def drop(self) -> None:
        """Releases files and memory, and removes a cleaned segment that did not replace its originals."""
        try:
            self._work.drop()
        except OSError as error:
            self.candidate.directory.fail(error)
