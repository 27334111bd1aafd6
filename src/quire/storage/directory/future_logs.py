"""Future logs: copies of partitions that move to this directory, in folders that end in `-future`.

A future log is a log like others: it is flushed, has a recovery point and a start offset in the checkpoints, and
survives any crash as a prefix of what was copied. It serves nobody. `quire.node.moves` fills it, and replaces the
original by it in these steps, each of which may be the last before a crash:

    ready_future     all of it is on disk, and so are its recovery point and its start
    mark_log         in the directory of the original, which says that there may be a copy, and where (`move_mark`)
    place_future     the copy says the same, and gets the name of the partition. From now on a start finds two logs of
                     the partition and takes the longer one; it takes none if the other directory has failed.
    take_future      in memory: the copy is the partition's log, and clients write to it; `leave_log` in the other one
    mark_log         when the copy is on disk up to where it took over, it says that it decides: a start takes no other
    remove_left      in the other directory, the original gets the name of a deleted log
    unmark_log       when that name is on disk
"""

import logging
from collections.abc import Callable
from contextlib import suppress

from quire.protocol.errors import ApiError, ErrorCode
from quire.storage import file_names
from quire.storage.directory import move_mark, partition_metadata
from quire.storage.directory.checkpoints import TopicPartition
from quire.storage.directory.directory_start import DirectoryStart
from quire.storage.directory.log_opener import IdentifiedLog
from quire.storage.directory.move_mark import MoveMark, MoveRole
from quire.storage.flushing.flusher import Then
from quire.storage.log import Log
from quire.storage.log_config import LogConfig

_log = logging.getLogger("quire.storage")

_AGAIN_MS = 10_000


class FutureLogs(DirectoryStart):
    def begin_future(self, key: TopicPartition, config: LogConfig, topic_id: bytes) -> Log:
        """A new future log; ApiError if its folder cannot be created."""
        name = file_names.future_folder(*key, self._random.uuid())
        if name is None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"the name of {key[0]} is too long for a future log")
        with self._guarded():
            self._remove_mark()
            log = self._opener.begin_future(key, config, name)
            log.sync_with_next_flush(partition_metadata.write_topic_id(self._disk, log.path, topic_id))
        self._add_future(key, IdentifiedLog(log, topic_id))
        return log

    def move_start(self, key: TopicPartition, offset: int, then: Then) -> None:
        """Moves the start of the future log to `offset`, and calls `then` when that is in the checkpoint on disk."""
        log = self.futures[key]

        def saved() -> None:
            if self.futures.get(key) is not log or log.closed:
                return
            with suppress(ApiError), self._guarded():
                if log.start_offset < offset <= log.end_offset and self._remembered.is_to_start_at(key, offset):
                    log.delete_records_before(offset)
                self._remembered.has_started(key)
                then()

        self._remembered.will_start_at(key, offset, saved)

    def ready_future(self, key: TopicPartition, then: Then, otherwise: Then) -> None:
        """Makes all of the future log durable, with what a start must know of it.

        `otherwise` is called if the disk is full, and neither if it fails or the log is dropped.
        """
        log = self.futures[key]

        def saved() -> None:
            if self.futures.get(key) is log:
                then()

        def flushed() -> None:
            if self.futures.get(key) is log:
                self._remembered.save_recovery_points_soon(saved)

        try:
            with self._guarded():
                log.write_last_files()
        except ApiError:
            if self.failure is None:
                otherwise()
            return
        self._flusher.flush(log, flushed, otherwise)

    def place_future(
        self,
        key: TopicPartition,
        source: bytes,
        high_watermark: int,
        then: Callable[[Log], None],
        otherwise: Callable[[Exception], None],
    ) -> None:
        """Gives the future log, which is on disk, the name of the partition, and opens it there: `then` gets it.

        `source` is the id of the directory of the original. After an error it is unknown which name it has. A repeated
        call continues where the last one ended.
        """
        log = self.futures[key]
        log.close_files()
        folder, name = log.path, f"{self.path}/{file_names.partition_folder(*key)}"
        config, end_offset, start_offset = log.config, log.end_offset, log.start_offset

        def place() -> Log:
            if self._disk.is_dir(folder):
                move_mark.write_mark(self._disk, folder, MoveMark(MoveRole.COPY, source))
                self._disk.rename(folder, name)
            self._disk.sync_dir(self.path)
            return self._opener.open_placed(key, config, end_offset, start_offset, high_watermark)

        def placed(opened: Log) -> None:
            if self.futures.get(key) is not log or self._closed:
                opened.close_files()
                return
            self._opener.share_cache(opened)
            self._prepare(opened)
            self.futures[key] = opened
            then(opened)

        self._jobs.submit(place, placed, otherwise)

    def take_future(self, key: TopicPartition) -> None:
        """The log that was placed is that of the partition."""
        self.logs[key] = self.futures.pop(key)
        self.topic_ids[key] = self.future_ids.pop(key)

    def mark_log(self, key: TopicPartition, mark: MoveMark, then: Then, otherwise: Callable[[Exception], None]) -> None:
        """Calls `then` when the log's folder has the mark, on disk."""
        folder = self.logs[key].path
        self._jobs.submit(lambda: move_mark.write_mark(self._disk, folder, mark), lambda _: then(), otherwise)

    def start_at_now(self, key: TopicPartition, offset: int) -> None:
        """Moves the start of a log. Blocks: for the start of a node."""
        with self._guarded():
            self._remembered.save_start_now(key, offset)
            self.logs[key].delete_records_before(offset)

    def unmark_log(self, key: TopicPartition) -> None:
        """There is no other log of the partition any more."""
        self.move_marks.pop(key, None)
        log = self.logs.get(key)
        if log is not None and self.failure is None:
            self._jobs.submit(lambda: move_mark.remove_mark(self._disk, log.path), lambda _: None, self._job_failed)

    def leave_log(self, key: TopicPartition) -> Log:
        """The partition has a log in another directory: this one is not used any more. `remove_left` removes it."""
        log = self.logs[key]
        self._take_out(*key)
        return log

    def remove_left(
        self, key: TopicPartition, log: Log, then: Then, otherwise: Callable[[Exception], None] | None = None
    ) -> None:
        """Removes the folder of a log that `leave_log` returned; `then` is called when its new name is on disk."""
        log.end_use()
        self._left[log] = None
        folder = f"{self.path}/{file_names.deleted_folder(*key, self._random.uuid())}"

        def rename() -> None:
            with suppress(FileNotFoundError):
                self._disk.rename(log.path, folder)
            self._disk.sync_dir(self.path)

        def renamed(_: None) -> None:
            self._removals.later(log.config.file_delete_delay_ms, remove)
            then()

        def remove() -> None:
            log.close_files()
            self._left.pop(log, None)
            self._removals.remove_folder(folder)

        def failed(error: Exception) -> None:
            self._job_failed(error)
            if self.failure is None:
                self._removals.later(_AGAIN_MS, again)
            elif otherwise is not None:
                otherwise(error)

        def again() -> None:
            if self.failure is None and key not in self.logs and key not in self.unopened:
                self._jobs.submit(rename, renamed, failed)

        again()

    def drop_future(self, key: TopicPartition) -> None:
        """The move is cancelled. The rename decides; a job removes the files."""
        log = self.futures.pop(key)
        self.future_ids.pop(key, None)
        self._removals.log_left(log.path)
        self._remembered.forget(key)
        log.close_files()
        if self.failure is None:
            self._remove_dropped(key, log.path)

    def _remove_dropped(self, key: TopicPartition, path: str) -> None:
        folder = f"{self.path}/{file_names.deleted_folder(*key, self._random.uuid())}"
        placed = f"{self.path}/{file_names.partition_folder(*key)}"
        if key in self.futures or key in self.logs or key in self.unopened:
            placed = path  # The name of the partition is that of another log by now.
        try:
            with self._guarded():
                for name in dict.fromkeys((path, placed)):
                    if self._disk.is_dir(name):
                        self._disk.rename(name, folder)
                        self._removals.remove_folder(folder)
        except ApiError as error:
            _log.error("the future log in %s could not be removed: %s", path, error.message)
            if self.failure is None:
                self._removals.later(_AGAIN_MS, lambda: self._remove_dropped(key, path))

    def keep_future(self, key: TopicPartition) -> str:
        """The original is gone: sets the future log aside, under the name of a stray one; returns that."""
        log = self.futures[key]
        folder = f"{self.path}/{file_names.stray_folder(*key, self._random.uuid())}"
        with self._guarded():
            log.close()
            self._disk.rename(log.path, folder)
        del self.futures[key], self.future_ids[key]
        self._removals.log_left(log.path)
        self._remembered.forget(key)
        return folder
