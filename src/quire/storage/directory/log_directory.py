"""One data directory: its owner, its logs, and what must be remembered of them from one run to the next.

    .lock                               held while a process uses the directory
    meta.properties                     the cluster and node it belongs to
    .kafka_cleanshutdown                exists only between a clean stop and the next start
    quire-registration                  the broker's registration, for a start after a kill
    recovery-point-offset-checkpoint    per partition: everything below is on disk
    log-start-offset-checkpoint         per partition: where its log starts
    replication-offset-checkpoint       per partition: its high watermark
    cleaner-offset-checkpoint           per partition: up to where it is compacted
    orders-0/, orders-1/, ...           the logs

What happens when its disk fails or is full is in `availability.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from quire.protocol.errors import ApiError, ErrorCode
from quire.seams import Clock, Disk, File, Jobs, Random
from quire.storage import file_names
from quire.storage.directory import clean_shutdown, partition_metadata
from quire.storage.directory.checkpoints import TopicPartition
from quire.storage.directory.durable_folder import make_durable_folder
from quire.storage.directory.future_logs import FutureLogs
from quire.storage.directory.meta_properties import MetaProperties, read_meta, write_meta
from quire.storage.errors import DataDirectoryError, unusable_directory
from quire.storage.flushing.flusher import Then
from quire.storage.log import Log
from quire.storage.log_config import LogConfig

LOCK_FILE = ".lock"

_DELETE_AGAIN_MS = 10_000

OnFailure = Callable[["LogDirectory", Exception], None]


class LogDirectory(FutureLogs):
    def __init__(
        self, disk: Disk, path: str, lock: File | None, clock: Clock, jobs: Jobs, random: Random, on_failure: OnFailure
    ) -> None:
        super().__init__(disk, path, lock, clock, jobs, random, lambda error: on_failure(self, error))
        self._to_delete_again: dict[TopicPartition, Log] = {}
        """Logs that could not be deleted. Those that are opened again, for a replica that was added again, stay."""

    @classmethod
    def open(
        cls, disk: Disk, path: str, *, clock: Clock, jobs: Jobs, random: Random, on_failure: OnFailure
    ) -> "LogDirectory":
        """Locks the directory, and creates it if necessary; DataDirectoryError if another process has it."""
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
            directory._opener.stopped_cleanly = directory.clean_broker_epoch is not None
            directory._opener.page_cache_intact = directory.registration.read() is not None
            directory._remembered.read()
        except BaseException:
            lock.close()
            raise
        return directory

    @classmethod
    def offline(
        cls, disk: Disk, path: str, error: Exception, *, clock: Clock, jobs: Jobs, random: Random, on_failure: OnFailure
    ) -> "LogDirectory":
        """A directory that could not be opened, so that the logs in it count as offline and not as missing."""
        directory = cls(disk, path, None, clock, jobs, random, on_failure)
        directory._availability.begin_offline(error)
        return directory

    def format(self, meta: MetaProperties) -> None:
        """Formats an empty directory for a node; a formatted one must belong to the same node."""
        if self.meta is not None:
            self.meta.check(self.path, cluster_id=meta.cluster_id, node_id=meta.node_id)
            return
        with self._guarded():
            write_meta(self._disk, self.path, meta)
        self.meta = meta

    # --- Logs

    def open_log(
        self,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        topic_id: bytes | None = None,
        always_scan: bool = False,
    ) -> Log:
        """The partition's log, created if it is not there; KAFKA_STORAGE_ERROR if its folder has another topic's id.

        The first call removes the clean-shutdown mark, durably, before anything in the directory changes. With
        `always_scan` the whole log is checked, as the metadata log is, whatever the mark says.
        """
        key = (topic, partition)
        if key not in self.logs:
            self.unopened[key] = None
            with self._guarded():
                self._remove_mark()
                self._add(key, self._opener.open_or_begin(key, config, always_scan=always_scan))
        if topic_id is not None:
            self._identify(key, topic_id)
        self._to_delete_again.pop(key, None)
        return self.logs[key]

    def _identify(self, key: TopicPartition, topic_id: bytes) -> None:
        """Checks that the log belongs to this topic; a folder without a topic id is assigned to it."""
        log = self.logs[key]
        if self.topic_ids[key] is None:
            with self._guarded():
                log.sync_with_next_flush(partition_metadata.write_topic_id(self._disk, log.path, topic_id))
            self.topic_ids[key] = topic_id
        if self.topic_ids[key] != topic_id:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.path} holds another topic of the same name")

    def delete_log(self, topic: str, partition: int) -> None:
        """Takes the partition out of use at once; a job removes its files after a delay.

        The rename decides. If a crash undoes it, the folder still has the id of a deleted topic, or of one without a
        replica here, and its owner deletes it again. If the disk has no room for the new name, the rename is retried,
        unless the log is opened again first.
        """
        log = self.logs[topic, partition]
        folder = f"{self.path}/{file_names.deleted_folder(topic, partition, self._random.uuid())}"
        try:
            with self._guarded():
                self._disk.rename(log.path, folder)
        except ApiError:
            if self.failure is None:
                self._to_delete_again[topic, partition] = log
                self._removals.later(_DELETE_AGAIN_MS, lambda: self._delete_again(topic, partition, log))
            raise
        self._take_out(topic, partition)
        log.close_files()
        self._removals.later(log.config.file_delete_delay_ms, lambda: self._removals.remove_folder(folder))

    def _delete_again(self, topic: str, partition: int, log: Log) -> None:
        if self._to_delete_again.pop((topic, partition), None) is log and self.logs.get((topic, partition)) is log:
            with suppress(ApiError):
                self.delete_log(topic, partition)

    def set_aside(self, topic: str, partition: int) -> str:
        """Takes a log of an unknown topic out of use and keeps its data; returns the name of the folder.

        The topic may have been deleted just before a crash, or the metadata was lost and this data is all that is left.
        """
        log = self.logs[topic, partition]
        folder = f"{self.path}/{file_names.stray_folder(topic, partition, self._random.uuid())}"
        with self._guarded():
            log.close()
            self._disk.rename(log.path, folder)
        self._take_out(topic, partition)
        return folder

    def truncate(self, targets: Sequence[tuple[Log, int]]) -> None:
        """Truncates logs to offsets.

        Before that the checkpoint moves their recovery points back. A crash may undo some of a truncation's steps and
        not others, and may tear what is written afterwards, so the scan must start at the truncation.
        """
        with self._guarded():
            cuts = [(log, log.recovery_point_if_truncated_to(offset), offset) for log, offset in targets]
            self._remembered.take_back(cuts)
            for log, offset in targets:
                log.truncate_to(offset)

    def start_over(self, log: Log, offset: int) -> None:
        """Empties the log and makes it start at `offset`; writes the checkpoint first, as in `truncate`."""
        with self._guarded():
            self._remembered.take_back([(log, offset, offset)])
            log.truncate_fully_and_start_at(offset)

    def delete_records(self, topic: str, partition: int, offset: int, then: Then) -> None:
        """Moves a log's start to `offset` once the checkpoint is durable: a start that clients saw never moves back.

        `then` is called when that is done, but not if the disk fails or the log is deleted first.
        """
        key = (topic, partition)
        log = self.logs[key]
        self._remembered.will_start_at(key, offset, lambda: self._start_at(key, log, offset, then))

    def drop_expired(self, topic: str, partition: int, high_watermark: int, more: Then) -> None:
        """Drops the oldest segments of a log that have expired; `more` is called if there may be others.

        See `quire.storage.deleting.expired_segments`.
        """
        with suppress(ApiError), self._guarded():
            self._expired.look_at((topic, partition), self.logs[topic, partition], high_watermark, more)

    def flush(self, log: Log, then: Then | None = None, otherwise: Then | None = None) -> None:
        """Makes what is in the log now durable, in a job, then calls `then`.

        `otherwise` is called instead if the disk fails or is full, and neither if the log is deleted first.
        """
        if self.failure is None:
            self._flusher.flush(log, then, otherwise)

    # --- Checkpoints

    def checkpoint(self) -> None:
        """Writes recovery points and log start offsets in the background, if they changed. Called at intervals."""
        self._availability.note_room()
        if self.failure is None:
            self._remembered.save_soon()

    def checkpoint_high_watermarks(self, offsets: Mapping[TopicPartition, int]) -> None:
        if self.failure is None:
            self._remembered.save_high_watermarks_soon(offsets)

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        return self._remembered.high_watermarks() if self.failure is None else {}

    def certain_recovery_point(self, key: TopicPartition) -> int:
        """The recovery point that a start after a crash will find in the checkpoint, at least."""
        return self._remembered.certain_recovery_point(key)

    def checkpoint_recovery_points(self) -> None:
        """Writes them in the background, if they changed."""
        if self.failure is None:
            self._remembered.save_recovery_points_soon()

    # --- Closing

    def prepare_close(self, then: Then) -> None:
        """Flushes all logs in jobs, so that `close` need not; then calls `then`.

        Also if the disk fails or is full, because then there is nothing more to prepare.
        """
        self.cancel_loading()
        self._flush_all(self._open_logs(), then, Log.write_last_files)

    def close(self, broker_epoch: int = clean_shutdown.NO_BROKER_EPOCH) -> None:
        """Closes the logs, writes the checkpoints and, last of all, the clean-shutdown mark. Jobs must have ended.

        The mark covers every log in the directory. If a log was not opened, no mark is written; if none was, the mark
        of the last run is still there. A crash before the mark is on disk is like any other crash. After a failure only
        the lock is released.
        """
        if self._closed:
            return
        self._closed = True
        self._removals.stop()
        try:
            if self.failure is None and (self._loaded or self.logs):
                with self._guarded():
                    for log in self._open_logs():
                        log.close()
                    self._remembered.finish()
                    if self._loaded and not self.unopened:
                        clean_shutdown.write_mark(self._disk, self.path, broker_epoch)
        finally:
            for log in self._open_logs():
                log.close_files()
            for log in self._left:
                log.close_files()
            self._removals.close_files()
            self.release()

    def _open_logs(self) -> list[Log]:
        """A future log that was closed to get its final name is on disk."""
        return [*self.logs.values(), *(log for log in self.futures.values() if not log.closed)]

    def release(self) -> None:
        """Unlocks the directory without closing anything: the start failed before it used it."""
        self._closed = True
        self._removals.stop()
        if self._lock is not None:
            self._lock.close()
