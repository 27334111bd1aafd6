"""From the folder of a partition to its log, recovered if need be, or to a new log in a new folder."""

from typing import NamedTuple

from quire.seams import Clock, Disk
from quire.storage import file_names
from quire.storage.deleting.retired import Remover
from quire.storage.directory import partition_metadata
from quire.storage.directory.checkpoints import TopicPartition
from quire.storage.directory.registration_mark import RegistrationMark
from quire.storage.directory.remembered_offsets import RememberedOffsets
from quire.storage.indexes.index_file import IndexCache
from quire.storage.log import Log
from quire.storage.log_config import LogConfig


class IdentifiedLog(NamedTuple):
    log: Log
    topic_id: bytes | None
    """As the folder says; None if it does not."""


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

    def open(self, key: TopicPartition, config: LogConfig, *, always_scan: bool = False) -> IdentifiedLog:
        """May run in a job: it reads what the directory remembers, and changes only the files of this log."""
        folder = self._folder(key)
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
            before_loss=self._registration.remove,
        )
        return IdentifiedLog(log, partition_metadata.read_topic_id(self._disk, folder))

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
