"""One checkpoint file of a data directory, written in the background or at once.

In the background a job writes and syncs a temporary file, the event loop renames it, unless something newer was written
meanwhile, and another job syncs the folder. Until then a power cut may bring the previous checkpoint back, and one that
lags behind only costs time. Who cannot live with that waits: for `then`, which is called when even a power cut leaves
this checkpoint or a newer one, or for `save_now`, which returns when it is on disk. What could not be written is
forgotten: the next call writes anew, and who waits goes on waiting for it.

A checkpoint that is needed to make room must not need room itself: `reserve_bytes` are then set aside in a file beside
it, and the next background write goes over that one's blocks instead of asking for new ones.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

from quire.seams import Disk, Jobs
from quire.seams.disk import write_atomically
from quire.storage.checkpoints import TopicPartition, format_offsets
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
        """What the file has for certain, even after a power cut; None when that is not known."""

    def save_now(self, offsets: Mapping[TopicPartition, int]) -> None:
        content = format_offsets(offsets)
        # What a job is writing meanwhile is out of date even if the file itself is right.
        self._latest = None
        if content != self._on_disk:
            self._on_disk = None
            write_atomically(self._disk, self._path, content)
            self._on_disk = content
        self._latest = content

    def save_soon(self, offsets: Mapping[TopicPartition, int], then: Callable[[], None] | None = None) -> None:
        """Does nothing if this is what was saved last. Of several calls while a job runs, the last one counts.

        A reserve that was used up is a reason to save again, until there is room for another one. `then` is not called
        if the disk fails first.
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
