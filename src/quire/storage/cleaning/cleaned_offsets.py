"""How far each log of a data directory is clean, in `cleaner-offset-checkpoint`.

An offset that lags behind costs work. One that is ahead of its log leaves records in it that could go, and with them
values that a tombstone was to delete, when that goes. So the file is written in the background, and taken back before a
log is cut, or one of the same name begins anew.
"""

from collections.abc import Callable

from quire.seams import Disk, Jobs
from quire.storage import checkpoints
from quire.storage.checkpoint_writer import CheckpointWriter
from quire.storage.checkpoints import TopicPartition


class CleanedOffsets:
    def __init__(self, disk: Disk, jobs: Jobs, directory: str, failed: Callable[[Exception], None]) -> None:
        self._disk = disk
        self._path = f"{directory}/{checkpoints.CLEANED_OFFSETS}"
        self._offsets: dict[TopicPartition, int] = {}
        self._writer = CheckpointWriter(disk, jobs, self._path, failed)
        self._gone: dict[TopicPartition, None] = {}
        """Logs that are gone but may still be named in the file."""

    def read(self) -> None:
        self._offsets = checkpoints.read_if_sensible(self._disk, self._path)

    def __contains__(self, key: TopicPartition) -> bool:
        """Whether the log was ever compacted: an offset stays when the topic's settings change."""
        return key in self._offsets

    def get(self, key: TopicPartition) -> int | None:
        return self._offsets.get(key)

    def is_clean_before(self, key: TopicPartition, offset: int) -> None:
        self._offsets[key] = offset
        self._writer.save_soon(self._offsets)

    def truncated(self, key: TopicPartition, offset: int) -> None:
        """The log will end at `offset`, and what comes there is new. Blocks until the file does not call it clean."""
        if self._offsets.get(key, 0) > offset:
            self._offsets[key] = offset
            self._writer.save_now(self._offsets)

    def forget(self, key: TopicPartition) -> None:
        """The log is gone."""
        if self._offsets.pop(key, None) is not None:
            self._gone[key] = None

    def save_now(self) -> None:
        """Blocks until the file is on disk; leaves none where nothing was ever cleaned."""
        if self._offsets or self._gone:
            self._writer.save_now(self._offsets)
            self._gone.clear()
