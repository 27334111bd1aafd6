"""Opens the logs of a data directory at a start, in jobs, so that the event loop answers meanwhile.

After a crash opening a log reads and checks everything that may not have been on disk, which takes seconds for a large
one. Nothing of this may hold up the loop: the node would not answer its peers, and a quorum would lose its leader.

One job opens a few logs and returns them; the loop adds them to the directory and submits the next job. A directory has
one such job at a time, because its logs share a cache of indexes. Directories are loaded side by side, but never with
all threads: the metadata log needs one for its syncs.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from quire.seams import Clock
from quire.storage.directory.checkpoints import TopicPartition
from quire.storage.directory.log_opener import IdentifiedLog, LogOpener
from quire.storage.few_jobs import FewJobs
from quire.storage.log_config import LogConfig

_log = logging.getLogger("quire.storage")

_LOGS_PER_JOB = 16
_PROGRESS_MS = 5_000.0
"""How often a long recovery reports how far it is."""


class FoundLog(NamedTuple):
    """The folder of a partition."""

    key: TopicPartition
    config: LogConfig
    future: str | None = None
    """The name of the folder, if it is that of a future log."""


class LogLoading:
    def __init__(
        self,
        path: str,
        found: list[FoundLog],
        opener: LogOpener,
        *,
        clock: Clock,
        jobs: FewJobs,
        opened: Callable[[FoundLog, IdentifiedLog | OSError], bool],
        finished: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """`opened` is called for each log and returns whether to try that one again.

        `finished` is called after the last one, `failed` when anything but a disk goes wrong.
        """
        self._path = path
        self._left = deque(found)
        self._count = len(found)
        self._opener = opener
        self._clock = clock
        self._jobs = jobs
        self._opened = opened
        self._finished = finished
        self._failed = failed
        self._cancelled = False
        self._reported_at_ms = clock.monotonic_ms()

    def start(self) -> None:
        self._next_job()

    def skip_rest(self) -> None:
        """Finishes without the logs that are left, because the directory has failed."""
        self._left.clear()

    def cancel(self) -> None:
        """Opens no further log and calls nothing back. The job that runs ends after the log that it is opening."""
        self._cancelled = True

    def _next_job(self) -> None:
        if not self._left:
            self._finished()
            return
        self._report_progress()
        some = [self._left.popleft() for _ in range(min(_LOGS_PER_JOB, len(self._left)))]
        self._jobs.submit(lambda: self._open_some(some), lambda results: self._take(some, results), self._failed)

    def _open_some(self, some: list[FoundLog]) -> list[IdentifiedLog | OSError]:
        """The job."""
        results: list[IdentifiedLog | OSError] = []
        for found in some:
            if self._cancelled:
                break
            try:
                results.append(self._opener.open(found.key, found.config, future=found.future))
            except OSError as error:
                results.append(error)
        return results

    def _take(self, some: list[FoundLog], results: list[IdentifiedLog | OSError]) -> None:
        if self._cancelled:
            return
        again = [found for found, result in zip(some, results, strict=False) if self._opened(found, result)]
        self._left.extendleft(reversed(again))
        self._next_job()

    def _report_progress(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._reported_at_ms >= _PROGRESS_MS:
            self._reported_at_ms = now_ms
            done = self._count - len(self._left)
            _log.info("opening the logs in %s: %d of %d are open", self._path, done, self._count)
