"""The fields of a data directory, and what all of its parts use. `LogDirectory` is built on this."""

import logging
from collections import ChainMap
from collections.abc import Callable
from contextlib import suppress

from quire.protocol.errors import ApiError
from quire.seams import Clock, Disk, File, Jobs, Random
from quire.storage.deleting.expired_segments import ExpiredSegments
from quire.storage.directory import clean_shutdown
from quire.storage.directory.availability import Availability
from quire.storage.directory.checkpoints import TopicPartition
from quire.storage.directory.log_loading import LogLoading
from quire.storage.directory.log_opener import IdentifiedLog, LogOpener
from quire.storage.directory.meta_properties import MetaProperties
from quire.storage.directory.move_mark import MoveMark
from quire.storage.directory.registration_mark import Registration, RegistrationMark
from quire.storage.directory.remembered_offsets import RememberedOffsets
from quire.storage.directory.removals import Removals
from quire.storage.directory.reserve import NO_RESERVE, Reserve
from quire.storage.flushing.flush_all import FlushAll
from quire.storage.flushing.flusher import Flusher, Then
from quire.storage.log import Log
from quire.storage.scanning.checker import Checker
from quire.storage.time_lookup.searcher import Searcher

_log = logging.getLogger("quire.storage")


class DirectoryState:
    def __init__(
        self,
        disk: Disk,
        path: str,
        lock: File | None,
        clock: Clock,
        jobs: Jobs,
        random: Random,
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._disk = disk
        self._lock = lock
        self._clock = clock
        self._jobs = jobs
        self._random = random
        self._on_failure = on_failure
        self._availability = Availability(path, self._error_reported)
        self._guarded = self._availability.guarded
        self._loading: LogLoading | None = None
        self._flusher = Flusher(jobs, self.fail)
        self._flushing_all = FlushAll(self._flusher, self._guarded)
        self.checker = Checker(jobs, self._job_failed)
        self.searcher = Searcher(jobs, self._job_failed)
        self._removals = Removals(disk, clock, jobs, self._job_failed)
        self._mark_removed = self._loaded = self._closed = False
        self.path = path
        self.reserve: Reserve = NO_RESERVE
        self.is_new = False
        """Whether it was empty before this start although its node is not new: a disk may not be mounted."""
        self.logs: dict[TopicPartition, Log] = {}
        self.topic_ids: dict[TopicPartition, bytes | None] = {}
        """According to the folders of the partitions; None if a folder does not say."""
        self.unopened: dict[TopicPartition, None] = {}
        """Logs that are not open yet or could not be opened: their folders are, or may be, in this directory."""
        self.futures: dict[TopicPartition, Log] = {}
        """Copies of logs that move to this directory; see `future_logs`."""
        self.future_ids: dict[TopicPartition, bytes | None] = {}
        """The topic ids of their folders."""
        self.move_marks: dict[TopicPartition, MoveMark] = {}
        """Of logs that were found at the start, and of which another directory may have a copy or the original."""
        self._left: dict[Log, None] = {}
        """Originals of logs that have moved elsewhere: fetches may still send their files."""
        self.meta: MetaProperties | None = None
        """None until the directory is formatted."""
        self.clean_broker_epoch: int | None = None
        """The broker epoch of the last run (or -1) if it stopped cleanly; else None."""
        self.registration = RegistrationMark(disk, path)
        self._remembered = RememberedOffsets(disk, jobs, path, ChainMap(self.logs, self.futures), self._job_failed)
        self._opener = LogOpener(disk, clock, path, self._remembered, self._removals.remove_segments, self.registration)
        self.cleaned_offsets = self._remembered.cleaned_offsets
        self._expired = ExpiredSegments(
            clock, self._flusher, self._remembered, self._guarded, self._start_at, self.checker.check
        )

    def __repr__(self) -> str:
        return f"LogDirectory({self.path!r})"

    @property
    def failure(self) -> Exception | None:
        """Why the directory is offline; None while it works."""
        return self._availability.failure

    def _remove_mark(self) -> None:
        if not self._mark_removed:
            if self.clean_broker_epoch is not None:
                # Nothing is lost yet, and nothing is if this process is killed before it has registered.
                self.registration.write(Registration(self.clean_broker_epoch))
            clean_shutdown.remove_mark(self._disk, self.path)
            self._mark_removed = True

    def _add(self, key: TopicPartition, opened: IdentifiedLog) -> None:
        self.logs[key] = self._prepare(opened.log)
        self.topic_ids[key] = opened.topic_id
        if opened.move is not None:
            self.move_marks[key] = opened.move
        del self.unopened[key]

    def _add_future(self, key: TopicPartition, opened: IdentifiedLog) -> None:
        self.futures[key] = self._prepare(opened.log)
        self.future_ids[key] = opened.topic_id

    def _prepare(self, log: Log) -> Log:
        log.on_roll, log.reserve = self._rolled, self.reserve
        return log

    def _take_out(self, topic: str, partition: int) -> None:
        log = self.logs.pop((topic, partition))
        self._removals.log_left(log.path)
        self._expired.forget(log)
        del self.topic_ids[topic, partition]
        self.move_marks.pop((topic, partition), None)
        self._remembered.forget((topic, partition))

    def _start_at(self, key: TopicPartition, log: Log, offset: int, then: Then) -> None:
        if self.logs.get(key) is not log or self._closed:
            return
        with suppress(ApiError), self._guarded():
            # The log may have been emptied meanwhile and continue before that offset.
            if offset > log.start_offset and self._remembered.is_to_start_at(key, offset):
                log.delete_records_before(offset)
            self._remembered.has_started(key)
            then()

    def _rolled(self, log: Log) -> None:
        self._flusher.flush(log, up_to=log.end.segment_base)

    def _flush_all(self, logs: list[Log], then: Then, before: Callable[[Log], None] | None = None) -> None:
        self._flushing_all.run(logs if self.failure is None else [], then, before)

    def fail(self, error: Exception) -> None:
        """Takes the directory offline at the first error, unless there is merely no room or no descriptor."""
        self._availability.fail(error)

    def _error_reported(self, error: Exception, went_offline: bool) -> None:
        if went_offline:
            self._on_failure(error)
        self._flushing_all.end()

    def _job_failed(self, error: Exception) -> None:
        """For work that can be done later: only errors of the disk count."""
        if isinstance(error, OSError):
            self.fail(error)
        else:
            _log.warning("put off for %s: %s", self.path, error)
