"""Flushing logs in jobs, one job per log at a time.

Requests that arrive while a job is running wait for the next one and share it: fifty writers that want their batch on
disk need one fsync (group commit).
"""

from collections.abc import Callable

from quire.seams import Jobs
from quire.storage.flushing.log_flush import FlushPlan
from quire.storage.log import Log

Then = Callable[[], None]


class _SharedFlush:
    """The requests that share one flush, and the highest offset that they ask for."""

    __slots__ = ("on_deleted", "on_failed", "on_flushed", "up_to")

    def __init__(self) -> None:
        self.up_to = 0
        self.on_flushed: list[Then] = []
        self.on_failed: list[Then] = []
        self.on_deleted: list[Then] = []

    def join(self, up_to: int, then: Then | None, otherwise: Then | None, deleted: Then | None) -> None:
        self.up_to = max(self.up_to, up_to)
        if then is not None:
            self.on_flushed.append(then)
        if otherwise is not None:
            self.on_failed.append(otherwise)
        if deleted is not None:
            self.on_deleted.append(deleted)


class Flusher:
    def __init__(self, jobs: Jobs, failed: Callable[[Exception], None]) -> None:
        self._jobs = jobs
        self._failed = failed
        self._next: dict[Log, _SharedFlush] = {}

    def flush(
        self,
        log: Log,
        then: Then | None = None,
        otherwise: Then | None = None,
        *,
        deleted: Then | None = None,
        up_to: int | None = None,
    ) -> None:
        """Makes the log durable up to its present end (or `up_to`), then calls `then` on the event loop.

        If the disk fails or is full, `otherwise` is called instead; if the log is deleted first, `deleted` is.
        """
        target = log.end_offset if up_to is None else up_to
        self._next.setdefault(log, _SharedFlush()).join(target, then, otherwise, deleted)
        if not log.flushing:
            _call(self._start(log))

    def _start(self, log: Log) -> list[Then]:
        """Starts the next flush, if one was requested; returns the callbacks that can run without it."""
        shared = self._next.pop(log, None)
        if shared is None:
            return []
        try:
            plan = log.start_flush(shared.up_to)
        except OSError as error:
            # A file was not open and cannot be opened.
            self._failed(error)
            return shared.on_failed
        if plan is None:
            return shared.on_flushed
        self._run(log, plan, shared)
        return []

    def _run(self, log: Log, plan: FlushPlan, shared: _SharedFlush) -> None:
        self._jobs.submit(
            plan.run, lambda _: self._has_run(log, plan, shared), lambda error: self._not_flushed(log, shared, error)
        )

    def _has_run(self, log: Log, plan: FlushPlan, shared: _SharedFlush) -> None:
        if log.closed:
            self._deleted(log, shared)
            return
        try:
            is_finished = log.finish_flush(plan)
        except OSError as error:
            self._not_flushed(log, shared, error)
            return
        if not is_finished:
            self._run(log, plan, shared)
            return
        # The next flush first, so that the disk works while the callbacks run.
        _call(shared.on_flushed + self._start(log))

    def _not_flushed(self, log: Log, shared: _SharedFlush, error: Exception) -> None:
        if log.closed:
            self._deleted(log, shared)
            return
        following = self._next.pop(log, None) or _SharedFlush()
        log.fail_flush()
        self._failed(error)
        _call(shared.on_failed + following.on_failed)

    def _deleted(self, log: Log, shared: _SharedFlush) -> None:
        following = self._next.pop(log, None) or _SharedFlush()
        _call(shared.on_deleted + following.on_deleted)


def _call(callbacks: list[Then]) -> None:
    for callback in callbacks:
        callback()
