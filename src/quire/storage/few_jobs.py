"""Limits how many jobs of one kind run at a time, so that other kinds find a free thread.

There are only a few threads. Jobs that clients can request without limit, and jobs that take long, must not use them
all, because a request may be waiting for a flush.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from quire.seams import Jobs

T = TypeVar("T")


class FewJobs:
    """Runs jobs in the order of submission, `at_most` at a time. `computes` holds for all of them (see `Jobs`)."""

    __slots__ = ("_at_most", "_computes", "_jobs", "_running", "_stopped", "_waiting")

    def __init__(self, jobs: Jobs, at_most: int, *, computes: bool = False) -> None:
        self._jobs = jobs
        self._at_most = at_most
        self._computes = computes
        self._running = 0
        self._waiting: deque[tuple[Callable[[], Any], Callable[[Any], None], Callable[[Exception], None]]] = deque()
        self._stopped = False

    def submit(self, work: Callable[[], T], done: Callable[[T], None], failed: Callable[[Exception], None]) -> None:
        self._waiting.append((work, done, failed))
        self._start()

    def stop(self) -> None:
        """Starts no more jobs, and makes no more callbacks."""
        self._stopped = True
        self._waiting.clear()

    def _start(self) -> None:
        while self._waiting and self._running < self._at_most and not self._stopped:
            self._running += 1
            work, done, failed = self._waiting.popleft()
            self._jobs.submit(work, self._then(done), self._then(failed), computes=self._computes)

    def _then(self, report: Callable[[Any], None]) -> Callable[[Any], None]:
        def ended(result: Any) -> None:
            self._running -= 1
            if self._stopped:
                return
            self._start()
            report(result)

        return ended
