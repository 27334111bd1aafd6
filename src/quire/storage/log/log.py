"""A partition's log: whole batches at rising offsets, in segments, in Kafka's files.

Guarantees: each offset is given once, in order; a batch is in the log completely or not at all; what `finish_flush` has
recorded survives any crash, and opening finds a prefix of what was written that contains at least that. One thread uses
a log; only the work of a `FlushPlan` or of `RetiredSegments` may run elsewhere. Every method may raise OSError, after
which the log is still consistent in memory; the caller decides whether the data directory can still be used.
"""

from typing import Unpack

from quire.seams import Disk
from quire.storage.deleting.retired import Remover, remove_now
from quire.storage.indexes.index_file import IndexCache
from quire.storage.log.deleting import LogDeleting
from quire.storage.log.flushing import LogFlushing
from quire.storage.log.following import LogFollowing
from quire.storage.log.reading import LogReading
from quire.storage.log.takeover import LogTakeover
from quire.storage.log_config import LogConfig
from quire.storage.recovery.log_recovery import KnownOfLog, begin_log, open_log


class Log(LogFollowing, LogTakeover, LogReading, LogDeleting, LogFlushing):
    __slots__ = ()

    @classmethod
    def open(
        cls,
        disk: Disk,
        path: str,
        config: LogConfig,
        *,
        cache: IndexCache | None = None,
        remove_retired: Remover = remove_now,
        **known: Unpack[KnownOfLog],
    ) -> "Log":
        """Opens the log in the folder `path`, or begins one in an empty folder. May run in a job."""
        cache = cache or IndexCache()
        return cls(disk, path, config, open_log(disk, path, config, cache, **known), cache, remove_retired)

    @classmethod
    def begin(
        cls, disk: Disk, path: str, config: LogConfig, *, now_ms: int, cache: IndexCache, remove_retired: Remover
    ) -> "Log":
        """Begins a log at offset 0 in a folder that is known to be empty, so unlike `open` it lists no files."""
        opened = begin_log(disk, path, config, cache, start_offset=0, now_ms=now_ms)
        return cls(disk, path, config, opened, cache, remove_retired)

    def close(self) -> None:
        """Makes everything durable and closes the files; after this the log may be opened as clean.

        A crash at any point leaves what a crash without closing would, because the clean-shutdown file comes later.
        """
        self._flush_state.end()
        self.write_last_files()
        self.flush()
        self.close_files()

    def close_files(self) -> None:
        """Closes the files without flushing: for a log that is being deleted or whose disk failed."""
        self.closed = True
        self._flush_state.close()
        for segment in self._segments:
            segment.close()
