"""Flushing logs in jobs, one job per log at a time.

Who asks while a job is under way waits for the next one, together with everybody else who came meanwhile: fifty writers
that want their batch on disk share one fsync.
"""

from collections.abc import Callable

from quire.seams import Jobs
from quire.storage.log import Log
from quire.storage.log_flush import FlushPlan

Then = Callable[[], None]


class Flusher:
    def __init__(self, jobs: Jobs, failed: Callable[[Exception], None]) -> None:
        self._jobs = jobs
        self._failed = failed
        self._waiting: dict[Log, list[Then]] = {}

    def flush(self, log: Log, then: Then | None = None, *, up_to: int | None = None) -> None:
        """Makes what is in the log now (or below `up_to`) durable, then calls `then` on the event loop.

        `then` is not called if the disk fails or the log is deleted first.
        """
        if log.flushing:
            waiting = self._waiting.setdefault(log, [])
            if then is not None:
                waiting.append(then)
        else:
            self._start(log, [] if then is None else [then], up_to)

    def _start(self, log: Log, waiting: list[Then], up_to: int | None) -> None:
        plan = log.start_flush(up_to)
        if plan is None:
            _call(waiting)
            return
        self._jobs.submit(
            plan.run, lambda _: self._flushed(log, plan, waiting), lambda error: self._not_flushed(log, error)
        )

    def _flushed(self, log: Log, plan: FlushPlan, waiting: list[Then]) -> None:
        if log.closed:
            return
        log.finish_flush(plan)
        later = self._waiting.pop(log, None)
        _call(waiting)
        if later is not None:
            self.flush(log, lambda: _call(later))

    def _not_flushed(self, log: Log, error: Exception) -> None:
        self._waiting.pop(log, None)
        if not log.closed:
            log.fail_flush()
            self._failed(error)


def _call(waiting: list[Then]) -> None:
    for then in waiting:
        then()
