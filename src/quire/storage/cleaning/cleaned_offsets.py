"""How far each log of a data directory is clean, in `cleaner-offset-checkpoint`.

An offset that is too low costs work. One that is too high leaves superseded records in the log; when their tombstone is
removed, deleted values reappear. So the file is written in the background, but reset before a log is truncated and
before a log of the same name is created.
"""

from collections.abc import Callable

from quire.seams import Disk, Jobs
from quire.storage.directory import checkpoints
from quire.storage.directory.checkpoint_writer import CheckpointWriter
from quire.storage.directory.checkpoints import TopicPartition


class CleanedOffsets:
    def __init__(self, disk: Disk, jobs: Jobs, directory: str, failed: Callable[[Exception], None]) -> None:
        self._disk = disk
        self._path = f"{directory}/{checkpoints.CLEANED_OFFSETS}"
        self._offsets: dict[TopicPartition, int] = {}
        self._writer = CheckpointWriter(disk, jobs, self._path, failed)
        self._gone: dict[TopicPartition, None] = {}
        """Deleted logs that may still be in the file."""

    def read(self) -> None:
        self._offsets = checkpoints.read_if_sensible(self._disk, self._path)

    def __contains__(self, key: TopicPartition) -> bool:
        """Whether the log was ever compacted. The offset remains when the topic's settings change."""
        return key in self._offsets

    def get(self, key: TopicPartition) -> int | None:
        return self._offsets.get(key)

    def is_clean_before(self, key: TopicPartition, offset: int) -> None:
        self._offsets[key] = offset
        self._writer.save_soon(self._offsets)

    def truncated(self, key: TopicPartition, offset: int) -> None:
        """Called before a log is truncated to `offset`. Blocks until the file has no higher offset for it."""
        if self._offsets.get(key, 0) > offset:
            self._offsets[key] = offset
            self._writer.save_now(self._offsets)

    def forget(self, key: TopicPartition) -> None:
        """The log was deleted."""
        if self._offsets.pop(key, None) is not None:
            self._gone[key] = None

    def save_now(self) -> None:
        """Blocks until the file is on disk; writes none if no log was ever cleaned."""
        if self._offsets or self._gone:
            self._writer.save_now(self._offsets)
            self._gone.clear()
