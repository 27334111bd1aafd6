"""Writes one checkpoint file of a data directory, in the background or at once.

In the background, a job writes and syncs a temporary file, the event loop renames it unless a newer version was written
meanwhile, and another job syncs the folder. Until then a power loss may restore the previous checkpoint; an old one
only costs time. A caller that needs certainty passes `then`, which is called when this checkpoint or a newer one is on
disk, or calls `save_now`, which blocks until it is. If a write fails, the next call writes again, and callers continue
to wait for that.

A checkpoint that is needed to free space must not need space itself. With `reserve_bytes`, that much is reserved in a
file beside it, and the next background write overwrites the blocks of that file instead of allocating new ones.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

from quire.seams import Disk, Jobs
from quire.seams.disk import write_atomically
from quire.storage.directory.checkpoints import TopicPartition, format_offsets
from quire.storage.file_names import TEMPORARY


class CheckpointWriter:
    def __init__(
        self, disk: Disk, jobs: Jobs, path: str, failed: Callable[[Exception], None], *, reserve_bytes: int = 0
    ) -> None:
        self._reserve_bytes = reserve_bytes
        self._lacks_reserve = reserve_bytes > 0
        self._disk = disk
        self._jobs = jobs
        self._path = path
        self._failed = failed
        self._latest: bytes | None = None
        self._under_way: bytes | None = None
        self._waiting: list[Callable[[], None]] = []
        self._on_disk: bytes | None = None
        """The contents of the file on disk; None if unknown."""

    def save_now(self, offsets: Mapping[TopicPartition, int]) -> None:
        content = format_offsets(offsets)
        # A job that is writing now has outdated contents, even if the file itself is right.
        self._latest = None
        if content != self._on_disk:
            self._on_disk = None
            write_atomically(self._disk, self._path, content)
            self._on_disk = content
        self._latest = content

    def finish(self) -> None:
        """Blocks until what was saved last is on disk. For a stop, which drops the jobs that have not run."""
        if self._latest is not None and self._latest != self._on_disk:
            self._on_disk = None
            write_atomically(self._disk, self._path, self._latest)
            self._on_disk = self._latest

    def save_soon(self, offsets: Mapping[TopicPartition, int], then: Callable[[], None] | None = None) -> None:
        """Does nothing if the same offsets were saved last. Of several calls while a job runs, the last one counts.

        If the reserve was used, it saves again until there is room for a new reserve. `then` is not called if the disk
        fails first.
        """
        content = format_offsets(offsets)
        if then is not None:
            self._waiting.append(then)
        if content != self._latest or self._lacks_reserve:
            self._latest = content
            if self._under_way is None:
                self._start()
        elif self._under_way is None and self._waiting:
            self._sync_folder()

    def _start(self) -> None:
        content = self._under_way = self._latest
        assert content is not None
        self._jobs.submit(lambda: self._write(content), lambda _: self._written(), self._not_written)

    def _write(self, content: bytes) -> None:
        if self._reserve_bytes and self._disk.exists(self._reserve_path):
            self._disk.rename(self._reserve_path, self._background_path)
        file = self._disk.open(self._background_path, create=True)
        try:
            file.pwritev([content], 0)
            file.truncate(len(content))
            file.sync()
        finally:
            file.close()
        if self._reserve_bytes:
            self._lacks_reserve = True
            with suppress(OSError):
                self._reserve(len(content) + self._reserve_bytes)
                self._lacks_reserve = False

    def _reserve(self, size: int) -> None:
        file = self._disk.open(self._reserve_path, create=True)
        try:
            file.pwritev([bytes(size)], 0)
        finally:
            file.close()

    def _written(self) -> None:
        current, self._under_way = self._under_way == self._latest, None
        if current:
            self._on_disk = None
            try:
                self._disk.rename(self._background_path, self._path)
            except OSError as error:
                self._not_written(error)
            else:
                self._sync_folder()
        elif self._latest is not None:
            self._start()

    def _sync_folder(self) -> None:
        waiting, self._waiting = self._waiting, []
        folder = self._path.rpartition("/")[0] or "."

        def not_synced(error: Exception) -> None:
            self._waiting = waiting + self._waiting
            self._failed(error)

        self._jobs.submit(lambda: self._disk.sync_dir(folder), lambda _: _call(waiting), not_synced)

    def _not_written(self, error: Exception) -> None:
        self._latest = self._under_way = None
        self._failed(error)

    @property
    def _reserve_path(self) -> str:
        return f"{self._path}.reserve{TEMPORARY}"

    @property
    def _background_path(self) -> str:
        return f"{self._path}.background{TEMPORARY}"


def _call(waiting: list[Callable[[], None]]) -> None:
    for then in waiting:
        then()
