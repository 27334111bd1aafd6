"""One data directory: who owns it, the logs in it, and what has to be remembered about them between two runs.

    .lock                               held while a process uses the directory
    meta.properties                     the cluster and node it belongs to
    .kafka_cleanshutdown                there only between a clean stop and the next start
    recovery-point-offset-checkpoint    per partition: everything below is on disk
    log-start-offset-checkpoint         per partition: where its log starts
    replication-offset-checkpoint       per partition: its high watermark
    cleaner-offset-checkpoint           per partition: up to where it is compacted
    orders-0/, orders-1/, ...           the logs

A disk that fails takes its directory with it and nothing else: the first OSError, wherever it shows, is reported once
through `on_failure`; whoever asks afterwards gets KAFKA_STORAGE_ERROR. A disk that is full has not failed: whoever
writes gets KAFKA_STORAGE_ERROR, what is written in the background is tried again at its next turn, and when there is
room everything goes on. The same holds while the machine is out of file descriptors.
"""

import errno
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import CLUSTER_METADATA
from quire.seams import Clock, Disk, File, Jobs, Random
from quire.storage import clean_shutdown, file_names, partition_metadata
from quire.storage.checker import Checker
from quire.storage.checkpoints import TopicPartition
from quire.storage.durable_folder import make_durable_folder
from quire.storage.errors import DataDirectoryError, is_shortage, unusable_directory
from quire.storage.expired_segments import ExpiredSegments
from quire.storage.flusher import Flusher, Then
from quire.storage.index_file import IndexCache
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.meta_properties import MetaProperties, read_meta, write_meta
from quire.storage.remembered_offsets import RememberedOffsets
from quire.storage.reserve import NO_RESERVE, Reserve
from quire.storage.retired import RetiredSegments
from quire.storage.searcher import Searcher

LOCK_FILE = ".lock"

_DELETE_AGAIN_MS = 10_000

OnFailure = Callable[["LogDirectory", Exception], None]

_log = logging.getLogger("quire.storage")


class LogDirectory:
    def __init__(
        self, disk: Disk, path: str, lock: File | None, clock: Clock, jobs: Jobs, random: Random, on_failure: OnFailure
    ) -> None:
        self._disk = disk
        self._lock = lock
        self._clock = clock
        self._jobs = jobs
        self._random = random
        self._on_failure = on_failure
        self._cache = IndexCache()
        self._flusher = Flusher(jobs, self.fail)
        self.checker = Checker(jobs, self._job_failed)
        self.searcher = Searcher(jobs, self._job_failed)
        self._retired: list[RetiredSegments] = []
        """Segments that are out of their logs and will be removed after a while."""
        self._mark_removed = self._loaded = self._closed = False
        self._when_prepared: Then | None = None
        self.path = path
        self.reserve: Reserve = NO_RESERVE
        self.is_new = False
        """Empty until this start, though its node is not: it may stand where a disk with data should."""
        self._full = False
        self._full_lately = False
        """Whether there was no room since the last checkpoint."""
        self.failure: Exception | None = None
        """Why the directory is offline; None while it works."""
        self.logs: dict[TopicPartition, Log] = {}
        self.topic_ids: dict[TopicPartition, bytes | None] = {}
        """As the partitions' own folders say; None where they do not."""
        self.unopened: dict[TopicPartition, None] = {}
        """Logs that were to be opened and could not be: their folders are, or may be, in this directory."""
        self.meta: MetaProperties | None = None
        """None until the directory is formatted."""
        self.clean_broker_epoch: int | None = None
        """The broker epoch of the last run (or -1) if it stopped cleanly; else None."""
        self._remembered = RememberedOffsets(disk, jobs, path, self.logs, self._job_failed)
        self._expired = ExpiredSegments(clock, self._flusher, self._remembered, self._guarded, self._start_at)
        self.cleaned_offsets = self._remembered.cleaned_offsets

    @classmethod
    def open(
        cls, disk: Disk, path: str, *, clock: Clock, jobs: Jobs, random: Random, on_failure: OnFailure
    ) -> "LogDirectory":
        """Takes the directory for this process, creating it if need be; DataDirectoryError when another has it."""
        try:
            make_durable_folder(disk, path)
            lock = disk.lock(f"{path}/{LOCK_FILE}")
        except OSError as error:
            raise unusable_directory(path, error) from error
        if lock is None:
            raise DataDirectoryError(
                f"{path} is in use by another process; stop that one first, or point log.dirs to another directory."
            )
        try:
            directory = cls(disk, path, lock, clock, jobs, random, on_failure)
            directory.meta = read_meta(disk, path)
            directory.clean_broker_epoch = clean_shutdown.read_mark(disk, path)
            directory._remembered.read()
        except BaseException:
            lock.close()
            raise
        return directory

    @classmethod
    def offline(
        cls, disk: Disk, path: str, error: Exception, *, clock: Clock, jobs: Jobs, random: Random, on_failure: OnFailure
    ) -> "LogDirectory":
        """A directory that could not even be opened, so that nobody takes what is in it for missing."""
        directory = cls(disk, path, None, clock, jobs, random, on_failure)
        directory.failure = error
        _log.error("the data directory %s is offline: %s", path, error)
        return directory

    def __repr__(self) -> str:
        return f"LogDirectory({self.path!r})"

    def format(self, meta: MetaProperties) -> None:
        """Makes an empty directory that of a node. Asked again, it must be the same node's."""
        if self.meta is not None:
            self.meta.check(self.path, cluster_id=meta.cluster_id, node_id=meta.node_id)
            return
        with self._guarded():
            write_meta(self._disk, self.path, meta)
        self.meta = meta

    # Logs

    def load_logs(self, config_of: Callable[[str], LogConfig]) -> None:
        """Opens every log in the directory but the metadata log, which its owner opens by itself, earlier.

        Folders on their way out are removed. What is neither a partition nor known otherwise is left alone. A log that
        cannot be opened is in `unopened` afterwards, and the others are open.
        """
        with self._guarded():
            names = self._disk.list_dir(self.path)
        for name in names:
            if file_names.is_deleted_folder(name):
                self._remove_folder(f"{self.path}/{name}")
                continue
            partition = file_names.parse_partition_folder(name)
            if partition is not None and partition[0] != CLUSTER_METADATA:
                self._load(*partition, config_of(partition[0]))
            elif partition is None and self._disk.is_dir(f"{self.path}/{name}"):
                _log.warning("leaving %s/%s alone: it is not the folder of a partition", self.path, name)
        self._loaded = True
        if self._remembered.is_foreign and not self.unopened:
            with suppress(ApiError), self._guarded():
                for key, log in self.logs.items():
                    was_compacted = log.config.compact or key in self.cleaned_offsets
                    if was_compacted and log.recovery_point < log.end.segment_base:
                        log.flush()
                self._remembered.take_over()

    def _load(self, topic: str, partition: int, config: LogConfig) -> None:
        try:
            self.open_log(topic, partition, config)
        except ApiError as error:
            if self.failure is not None:
                raise
            if self._full and self.reserve.release():
                self._load(topic, partition, config)
                return
            _log.error("%s-%d in %s cannot be opened: %s", topic, partition, self.path, error.message)

    def open_log(
        self,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        topic_id: bytes | None = None,
        always_scan: bool = False,
    ) -> Log:
        """The partition's log, created if it is not there; KAFKA_STORAGE_ERROR if what is there is another topic's.

        The first call removes the clean-shutdown mark, durably, before anything in the directory changes. With
        `always_scan` the whole log is checked, as the metadata log is, whatever the mark says.
        """
        key = (topic, partition)
        if key not in self.logs:
            self.unopened[key] = None
            with self._guarded():
                log, self.topic_ids[key] = self._open(key, config, always_scan)
            log.on_roll, log.reserve = self._rolled, self.reserve
            self.logs[key] = log
            del self.unopened[key]
        if topic_id is not None:
            self._identify(key, topic_id)
        return self.logs[key]

    def _open(self, key: TopicPartition, config: LogConfig, always_scan: bool) -> tuple[Log, bytes | None]:
        """The log and the topic id that its folder has."""
        if not self._mark_removed:
            clean_shutdown.remove_mark(self._disk, self.path)
            self._mark_removed = True
        folder = f"{self.path}/{file_names.partition_folder(*key)}"
        now_ms = self._clock.now_ms()
        if not self._disk.is_dir(folder):
            self._remembered.make_way_for(key)
            self._disk.make_dirs(folder)
            log = Log.begin(
                self._disk, folder, config, now_ms=now_ms, cache=self._cache, remove_retired=self._remove_later
            )
            return log, None
        log = Log.open(
            self._disk,
            folder,
            config,
            clean=self.clean_broker_epoch is not None and not always_scan,
            now_ms=now_ms,
            recovery_point=0 if always_scan else self._remembered.recovery_point(key),
            log_start_offset=self._remembered.start_offset(key),
            foreign=self._remembered.is_foreign,
            was_compacted=key in self.cleaned_offsets,
            cache=self._cache,
            remove_retired=self._remove_later,
        )
        return log, partition_metadata.read_topic_id(self._disk, folder)

    def _identify(self, key: TopicPartition, topic_id: bytes) -> None:
        """The log is that of this topic: as its folder says or, where that says nothing, from now on."""
        log = self.logs[key]
        if self.topic_ids[key] is None:
            with self._guarded():
                log.sync_with_next_flush(partition_metadata.write_topic_id(self._disk, log.path, topic_id))
            self.topic_ids[key] = topic_id
        if self.topic_ids[key] != topic_id:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.path} holds another topic of the same name")

    def delete_log(self, topic: str, partition: int) -> None:
        """Takes the partition out of use at once; its files are removed by a job, a while later.

        The rename is what counts. If a crash undoes it, the folder still has the id of a topic that is gone, and its
        owner deletes it again. If there is no room for another name, it is tried again until there is.
        """
        log = self.logs[topic, partition]
        folder = f"{self.path}/{file_names.deleted_folder(topic, partition, self._random.uuid())}"
        try:
            with self._guarded():
                self._disk.rename(log.path, folder)
        except ApiError:
            if self.failure is None:
                self._later(_DELETE_AGAIN_MS, lambda: self._delete_again(topic, partition, log))
            raise
        self._take_out(topic, partition)
        log.close_files()
        self._later(log.config.file_delete_delay_ms, lambda: self._remove_folder(folder))

    def _delete_again(self, topic: str, partition: int, log: Log) -> None:
        if self.logs.get((topic, partition)) is log:
            with suppress(ApiError):
                self.delete_log(topic, partition)

    def set_aside(self, topic: str, partition: int) -> str:
        """Takes a log out of use whose topic nobody knows, and keeps its data in a folder of its own, which it names.

        Its topic may have been deleted just before a crash. Or the metadata was lost, and these are all that is left.
        """
        log = self.logs[topic, partition]
        folder = f"{self.path}/{file_names.stray_folder(topic, partition, self._random.uuid())}"
        with self._guarded():
            log.close()
            self._disk.rename(log.path, folder)
        self._take_out(topic, partition)
        return folder

    def _take_out(self, topic: str, partition: int) -> None:
        self._expired.forget(self.logs.pop((topic, partition)))
        del self.topic_ids[topic, partition]
        self._remembered.forget((topic, partition))

    def truncate(self, targets: Sequence[tuple[Log, int]]) -> None:
        """Truncates logs to offsets.

        Before that the checkpoint takes their recovery points back. A crash may undo some of a truncation's steps and
        not others, and may tear what is written afterwards: the scan then has to begin where the truncation did.
        """
        with self._guarded():
            cuts = [(log, log.recovery_point_if_truncated_to(offset), offset) for log, offset in targets]
            self._remembered.take_back(cuts)
            for log, offset in targets:
                log.truncate_to(offset)

    def start_over(self, log: Log, offset: int) -> None:
        """Empties the log and lets it begin at `offset`; the checkpoint first, as in `truncate`."""
        with self._guarded():
            self._remembered.take_back([(log, offset, offset)])
            log.truncate_fully_and_start_at(offset)

    def delete_records(self, topic: str, partition: int, offset: int, then: Then) -> None:
        """Moves a log's start to `offset` once the checkpoint says so, for good: a start that was seen stays.

        `then` is called when that is done; not if the disk fails or the log is deleted first.
        """
        key = (topic, partition)
        log = self.logs[key]
        self._remembered.will_start_at(key, offset, lambda: self._start_at(key, log, offset, then))

    def _start_at(self, key: TopicPartition, log: Log, offset: int, then: Then) -> None:
        if self.logs.get(key) is not log or self._closed:
            return
        with suppress(ApiError), self._guarded():
            # Unless the log was emptied meanwhile, to go on before that.
            if offset > log.start_offset and self._remembered.is_to_start_at(key, offset):
                log.delete_records_before(offset)
            self._remembered.has_started(key)
            then()

    def drop_expired(self, topic: str, partition: int, high_watermark: int, more: Then) -> None:
        """Drops the oldest segments of a log that its retention settings want to be gone; `more`: there may be others.

        See `quire.storage.expired_segments`.
        """
        with suppress(ApiError), self._guarded():
            self._expired.look_at((topic, partition), self.logs[topic, partition], high_watermark, more)

    def flush(self, log: Log, then: Then | None = None, otherwise: Then | None = None) -> None:
        """Makes what is in the log now durable, in a job; `then` is called when it is, and only then.

        `otherwise` is called instead when the disk fails now or is full; neither is when the log is deleted first.
        """
        if self.failure is None:
            self._flusher.flush(log, then, otherwise)

    def prepare_use(self, then: Then) -> None:
        """Does what `flush_before_use` does, for all logs that were loaded, in jobs; `then` as in `prepare_close`."""
        self._flush_all([log for log in self.logs.values() if log.is_flush_due], then)

    def flush_before_use(self, log: Log) -> None:
        """Blocks until a log that was just opened has on disk what its topic wants there before anybody relies on it.

        A process that died may have left records whose flush it did not live to see. Like reading the log, this comes
        before anybody is served from it.
        """
        if log.is_flush_due and not log.flushing:
            with self._guarded():
                log.flush()

    def _rolled(self, log: Log) -> None:
        self._flusher.flush(log, up_to=log.end.segment_base)

    # What is remembered

    def checkpoint(self) -> None:
        """Writes recovery points and log start offsets in the background, if they changed. Called every so often."""
        if self._full and not self._full_lately:
            self._full = False
            _log.info("%s has room again", self.path)
        self._full_lately = False
        if self.failure is None:
            self._remembered.save_soon()

    def checkpoint_high_watermarks(self, offsets: Mapping[TopicPartition, int]) -> None:
        if self.failure is None:
            self._remembered.save_high_watermarks_soon(offsets)

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        return self._remembered.high_watermarks() if self.failure is None else {}

    def certain_recovery_point(self, key: TopicPartition) -> int:
        """Up to where a log is on disk, and the checkpoint says so for good."""
        return self._remembered.certain_recovery_point(key)

    def checkpoint_recovery_points(self) -> None:
        """Writes them in the background, if they changed."""
        if self.failure is None:
            self._remembered.save_recovery_points_soon()

    # Ending

    def prepare_close(self, then: Then) -> None:
        """Flushes all logs in jobs, many at a time; `then` is called when `close` has next to nothing left to wait for.

        It is called too when the disk fails or is full: then there is nothing more to prepare.
        """
        self._flush_all(list(self.logs.values()), then, Log.write_last_files)

    def _flush_all(self, logs: list[Log], then: Then, before: Callable[[Log], None] | None = None) -> None:
        self._when_prepared = then
        unprepared = len(logs)

        def prepared() -> None:
            nonlocal unprepared
            unprepared -= 1
            if unprepared == 0 and self._when_prepared is then:
                self._preparing_ended()

        if unprepared == 0 or self.failure is not None:
            self._preparing_ended()
            return
        with suppress(ApiError), self._guarded():
            for log in logs:
                if before is not None:
                    before(log)
                self._flusher.flush(log, prepared)

    def _preparing_ended(self) -> None:
        then, self._when_prepared = self._when_prepared, None
        if then is not None:
            then()

    def close(self, broker_epoch: int = clean_shutdown.NO_BROKER_EPOCH) -> None:
        """Stops cleanly: closes the logs, writes the checkpoints and, last of all, the mark. Jobs must have ended.

        The mark speaks for every log in the directory: if one was not opened, there is none, or still that of the last
        run if this one did not get as far as opening any. A crash before the mark is on disk is a crash like any other.
        After a failure only the lock is let go.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self.failure is None and (self._loaded or self.logs):
                with self._guarded():
                    for log in self.logs.values():
                        log.close()
                    self._remembered.save_now()
                    if self._loaded and not self.unopened:
                        clean_shutdown.write_mark(self._disk, self.path, broker_epoch)
        finally:
            for log in self.logs.values():
                log.close_files()
            for retired in self._retired:
                retired.close_files()
            self.release()

    def release(self) -> None:
        """Lets the directory go as it is, without closing anything: the start did not come to the point of using it."""
        self._closed = True
        if self._lock is not None:
            self._lock.close()

    def fail(self, error: Exception) -> None:
        """Takes the directory out of service at the first error, unless there is merely no room or no descriptor."""
        if is_shortage(error):
            self._note_full(error)
        elif self.failure is None:
            self.failure = error
            _log.error("the data directory %s is offline: %s", self.path, error)
            self._on_failure(self, error)
        self._preparing_ended()

    def _note_full(self, error: Exception) -> None:
        if not self._full:
            _log.error("nothing can be written to %s until there is room again: %s", self.path, error)
        self._full = self._full_lately = True

    def _job_failed(self, error: Exception) -> None:
        """Of work that may as well be done later: only the disk's own errors count."""
        if isinstance(error, OSError):
            self.fail(error)
        else:
            _log.warning("put off for %s: %s", self.path, error)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """An OSError within becomes KAFKA_STORAGE_ERROR, and ends the service of this directory unless it is full."""
        if self.failure is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.path} is offline: {self.failure}")
        try:
            yield
        except OSError as error:
            self.fail(error)
            became = "is full" if self.failure is None else "went offline"
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.path} {became}: {error}") from error

    def _remove_later(self, retired: RetiredSegments, delay_ms: int) -> None:
        self._retired.append(retired)

        # Until they are removed for certain they are to be closed with the directory: a stop may forget the job.
        def removed(_: None) -> None:
            self._retired.remove(retired)

        self._later(delay_ms, lambda: self._jobs.submit(retired.remove, removed, self._job_failed))

    def _remove_folder(self, folder: str) -> None:
        def failed(error: Exception) -> None:
            if not isinstance(error, OSError) or error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                self._job_failed(error)
            elif self._disk.is_dir(folder):  # A flush that had begun before has renamed a file in it meanwhile.
                self._later(_DELETE_AGAIN_MS, lambda: self._remove_folder(folder))

        self._jobs.submit(lambda: self._disk.remove_tree(folder), lambda _: None, failed)

    def _later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """What is not done before the directory is closed is done by the next start."""
        self._clock.call_later(delay_ms, lambda: None if self._closed else action())
