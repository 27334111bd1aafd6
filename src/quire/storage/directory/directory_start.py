"""The start of a data directory: it opens the logs of the last process, and flushes them before they are used."""

import logging
from collections.abc import Callable
from contextlib import suppress

from quire.protocol.errors import ApiError
from quire.storage.directory.checkpoints import TopicPartition
from quire.storage.directory.directory_state import DirectoryState
from quire.storage.directory.log_loading import FoundLog, LogLoading
from quire.storage.directory.log_opener import IdentifiedLog
from quire.storage.directory.partition_folders import PartitionFolders, list_folders
from quire.storage.few_jobs import FewJobs
from quire.storage.flushing.flusher import Then
from quire.storage.log import Log
from quire.storage.log_config import LogConfig

_log = logging.getLogger("quire.storage")


class DirectoryStart(DirectoryState):
    def load_logs(
        self,
        config_of: Callable[[str], LogConfig],
        jobs: FewJobs,
        then: Then,
        failed: Callable[[Exception], None],
    ) -> None:
        """Opens every log in the directory, in jobs, except the metadata log, which its owner opens earlier.

        Removes folders of deleted logs, and leaves alone what is not the folder of a partition. `then` is called when
        all logs are open, or the directory has failed. A log that cannot be opened is in `unopened` then. `failed` is
        called instead after an error that is not the disk's, or if it is unknown which logs there are: a new log must
        not take the place of one that exists.
        """
        try:
            found = self._find_logs(config_of) if self.failure is None else []
        except OSError as error:
            self.fail(error)
            if self.failure is None:
                failed(error)
            else:
                then()
            return
        self._loading = LogLoading(
            self.path,
            found,
            self._opener,
            clock=self._clock,
            jobs=jobs,
            opened=self._opened,
            finished=lambda: self._logs_opened(then),
            failed=failed,
        )
        self._loading.start()

    def cancel_loading(self) -> None:
        """Opens no further log, because the node stops or has failed."""
        if self._loading is not None:
            self._loading.cancel()

    def _find_logs(self, config_of: Callable[[str], LogConfig]) -> list[FoundLog]:
        folders = list_folders(self._disk, self.path)
        for folder in folders.deleted:
            self._removals.remove_folder(folder)
        if folders.partitions or folders.futures:
            self._remove_mark()
        self.unopened.update(dict.fromkeys(folders.partitions))
        futures = self._futures_of_use(folders)
        return [FoundLog(key, config_of(key[0])) for key in folders.partitions] + [
            FoundLog(key, config_of(key[0]), name) for key, name in futures.items()
        ]

    def _futures_of_use(self, folders: PartitionFolders) -> dict[TopicPartition, str]:
        """One for each partition, and none beside the log of the partition itself. Removes the others."""
        of_use: dict[TopicPartition, str] = {}
        for key, name in folders.futures:
            if key in self.unopened or key in of_use:
                self._removals.remove_folder(f"{self.path}/{name}")
            else:
                of_use[key] = name
        return of_use

    def _opened(self, found: FoundLog, result: IdentifiedLog | OSError) -> bool:
        """Takes what a job opened into use. Returns whether the log should be tried again, with more room."""
        if not isinstance(result, OSError):
            if found.future is None:
                self._add(found.key, result)
            else:
                self._add_future(found.key, result)
            return False
        self.fail(result)
        if self.failure is not None:
            assert self._loading is not None
            self._loading.skip_rest()
            return False
        if self._availability.is_full and self.reserve.release():
            return True
        _log.error("%s-%d in %s cannot be opened: %s", *found.key, self.path, result)
        return False

    def _logs_opened(self, then: Then) -> None:
        self._loading = None
        with suppress(ApiError), self._guarded():
            self._remembered.lower_high_watermarks({key: log.end_offset for key, log in self.logs.items()})
        self._loaded = self.failure is None
        if not self._remembered.is_foreign or self.unopened or self.failure is not None:
            then()
            return
        self._flush_all(self._foreign_logs_to_flush(), lambda: self._take_over(then))

    def _foreign_logs_to_flush(self) -> list[Log]:
        compacted = [log for key, log in self.logs.items() if log.config.compact or key in self.cleaned_offsets]
        return [log for log in compacted if log.recovery_point < log.end.segment_base]

    def _take_over(self, then: Then) -> None:
        """From now on the directory is written by Quire alone; see `quire.storage.recovery.gap_mark`.

        Not if a flush has failed: a gap beyond the recovery point would then count as a loss.
        """
        if not self._foreign_logs_to_flush():
            with suppress(ApiError), self._guarded():
                self._remembered.take_over()
        then()

    def prepare_use(self, then: Then) -> None:
        """`flush_before_use` for all logs that were loaded, in jobs; `then` as in `prepare_close`."""
        self._flush_all([log for log in self.logs.values() if log.is_flush_due], then)

    def flush_before_use(self, log: Log) -> None:
        """Blocks until a log that was just opened is flushed as its topic's `flush.messages` requires.

        A process that was killed may have left records that it had not flushed. They must be on disk before clients
        read them.
        """
        if log.is_flush_due and not log.flushing:
            with self._guarded():
                log.flush()
