"""From the folder of a partition to its log, recovered if need be, or to a new log in a new folder."""

from typing import NamedTuple

from quire.seams import Clock, Disk
from quire.storage import file_names
from quire.storage.deleting.retired import Remover
from quire.storage.directory import move_mark, partition_metadata
from quire.storage.directory.checkpoints import TopicPartition
from quire.storage.directory.move_mark import MoveMark
from quire.storage.directory.registration_mark import RegistrationMark
from quire.storage.directory.remembered_offsets import RememberedOffsets
from quire.storage.indexes.index_file import IndexCache
from quire.storage.log import Log
from quire.storage.log_config import LogConfig


class IdentifiedLog(NamedTuple):
    log: Log
    topic_id: bytes | None
    """As the folder says; None if it does not."""
    move: MoveMark | None = None
    """If another directory may have a copy of the log, or its original."""


class LogOpener:
    __slots__ = (
        "_cache",
        "_clock",
        "_disk",
        "_path",
        "_registration",
        "_remembered",
        "_remover",
        "page_cache_intact",
        "stopped_cleanly",
    )

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        path: str,
        remembered: RememberedOffsets,
        remover: Remover,
        registration: RegistrationMark,
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._path = path
        self._remembered = remembered
        self._remover = remover
        self._registration = registration
        self._cache = IndexCache()
        self.stopped_cleanly = False
        """Whether the last run closed every log of the directory: then none of them is scanned."""
        self.page_cache_intact = False
        """Whether what the last run wrote is there, even if it was killed."""

    def open(
        self, key: TopicPartition, config: LogConfig, *, always_scan: bool = False, future: str | None = None
    ) -> IdentifiedLog:
        """May run in a job: it reads what the directory remembers, and changes only the files of this log.

        `future` is the name of the folder of a future log.
        """
        folder = self._folder(key) if future is None else f"{self._path}/{future}"
        log = Log.open(
            self._disk,
            folder,
            config,
            clean=self.stopped_cleanly and not always_scan,
            now_ms=self._clock.now_ms(),
            recovery_point=0 if always_scan else self._remembered.recovery_point(key),
            log_start_offset=self._remembered.start_offset(key),
            high_watermark=self._remembered.high_watermark(key),
            page_cache_intact=self.page_cache_intact,
            foreign=self._remembered.is_foreign,
            was_compacted=key in self._remembered.cleaned_offsets,
            cache=self._cache,
            remove_retired=self._remover,
            # A future log serves nobody: the original still has what it may lose.
            before_loss=self._registration.remove if future is None else lambda: None,
        )
        topic_id = partition_metadata.read_topic_id(self._disk, folder)
        return IdentifiedLog(log, topic_id, move_mark.read_mark(self._disk, folder))

    def open_placed(
        self, key: TopicPartition, config: LogConfig, end_offset: int, start_offset: int, high_watermark: int
    ) -> Log:
        """Opens a future log that was flushed and closed, under its new name. In a job, so with a cache of its own."""
        return Log.open(
            self._disk,
            self._folder(key),
            config,
            clean=True,
            now_ms=self._clock.now_ms(),
            recovery_point=end_offset,
            log_start_offset=start_offset,
            high_watermark=high_watermark,
            remove_retired=self._remover,
            before_loss=self._registration.remove,
        )

    def share_cache(self, log: Log) -> None:
        """On the event loop: the indexes of a log from `open_placed` join those of the directory."""
        log.use_cache(self._cache)

    def begin_future(self, key: TopicPartition, config: LogConfig, name: str) -> Log:
        """A new log in a new folder of this name."""
        self._remembered.make_way_for(key)
        folder = f"{self._path}/{name}"
        self._disk.make_dirs(folder)
        now_ms = self._clock.now_ms()
        return Log.begin(self._disk, folder, config, now_ms=now_ms, cache=self._cache, remove_retired=self._remover)

    def open_or_begin(self, key: TopicPartition, config: LogConfig, *, always_scan: bool = False) -> IdentifiedLog:
        folder = self._folder(key)
        if self._disk.is_dir(folder):
            return self.open(key, config, always_scan=always_scan)
        self._remembered.make_way_for(key)
        self._disk.make_dirs(folder)
        now_ms = self._clock.now_ms()
        log = Log.begin(self._disk, folder, config, now_ms=now_ms, cache=self._cache, remove_retired=self._remover)
        return IdentifiedLog(log, None)

    def _folder(self, key: TopicPartition) -> str:
        return f"{self._path}/{file_names.partition_folder(*key)}"
