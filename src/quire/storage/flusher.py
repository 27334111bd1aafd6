"""Flushing logs in jobs, one job per log at a time.

Who asks while a job is under way waits for the next one, together with everybody else who came meanwhile: fifty writers
that want their batch on disk share one fsync.
"""

from collections.abc import Callable

from quire.seams import Jobs
from quire.storage.log import Log
from quire.storage.log_flush import FlushPlan

Then = Callable[[], None]


class _Round:
    """Those who wait for the same flush, and how far they want it to go."""

    __slots__ = ("thens", "up_to")

    def __init__(self) -> None:
        self.up_to = 0
        self.thens: list[Then] = []

    def join(self, up_to: int, then: Then | None) -> None:
        self.up_to = max(self.up_to, up_to)
        if then is not None:
            self.thens.append(then)


class Flusher:
    def __init__(self, jobs: Jobs, failed: Callable[[Exception], None]) -> None:
        self._jobs = jobs
        self._failed = failed
        self._next: dict[Log, _Round] = {}

    def flush(self, log: Log, then: Then | None = None, *, up_to: int | None = None) -> None:
        """Makes what is in the log now (or below `up_to`) durable, then calls `then` on the event loop.

        `then` is not called if the disk fails or the log is deleted first.
        """
        self._next.setdefault(log, _Round()).join(log.end_offset if up_to is None else up_to, then)
        if not log.flushing:
            _call(self._start(log))

    def _start(self, log: Log) -> list[Then]:
        """Begins the next round, if somebody waits for one; returns those who have nothing to wait for."""
        this = self._next.pop(log, None)
        if this is None:
            return []
        plan = log.start_flush(this.up_to)
        if plan is None:
            return this.thens
        self._jobs.submit(
            plan.run, lambda _: self._flushed(log, plan, this), lambda error: self._not_flushed(log, error)
        )
        return []

    def _flushed(self, log: Log, plan: FlushPlan, this: _Round) -> None:
        if log.closed:
            return
        log.finish_flush(plan)
        # First the next round: the disk works while these are told, and whatever becomes of that.
        _call(this.thens + self._start(log))

    def _not_flushed(self, log: Log, error: Exception) -> None:
        self._next.pop(log, None)
        if not log.closed:
            log.fail_flush()
            self._failed(error)


def _call(thens: list[Then]) -> None:
    for then in thens:
        then()
