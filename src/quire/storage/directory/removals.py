"""Removes unused files of a data directory in jobs, most of them after a delay.

The next start removes those that are left when the directory is closed.
"""

import errno
from collections.abc import Callable

from quire.seams import Clock, Disk, Jobs
from quire.storage.deleting.retired import RetiredSegments

_RETRY_MS = 10_000


class Removals:
    __slots__ = ("_clock", "_disk", "_failed", "_jobs", "_retired", "_stopped")

    def __init__(self, disk: Disk, clock: Clock, jobs: Jobs, failed: Callable[[Exception], None]) -> None:
        self._disk = disk
        self._clock = clock
        self._jobs = jobs
        self._failed = failed
        self._retired: list[RetiredSegments] = []
        self._stopped = False

    def remove_segments(self, retired: RetiredSegments, delay_ms: int) -> None:
        """Removes segments that have left their log, after a delay in which fetches may still send them."""
        self._retired.append(retired)

        # Their files are closed with the directory if the job never runs: a stop drops the jobs that have not begun.
        def removed(_: None) -> None:
            self._retired.remove(retired)

        self.later(delay_ms, lambda: self._jobs.submit(retired.remove, removed, self._failed))

    def log_left(self, folder: str) -> None:
        """The log in this folder was deleted or set aside, and its folder renamed: its segments went with it."""
        for retired in self._retired:
            retired.abandon_in(folder)

    def remove_folder(self, folder: str) -> None:
        def failed(error: Exception) -> None:
            if not isinstance(error, OSError) or error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                self._failed(error)
            elif self._disk.is_dir(folder):  # A flush that had begun before has renamed a file in it meanwhile.
                self.later(_RETRY_MS, lambda: self.remove_folder(folder))

        self._jobs.submit(lambda: self._disk.remove_tree(folder), lambda _: None, failed)

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Calls `action` after the delay, unless the directory is closed by then."""
        self._clock.call_later(delay_ms, lambda: None if self._stopped else action())

    def stop(self) -> None:
        self._stopped = True

    def close_files(self) -> None:
        for retired in self._retired:
            retired.close_files()
