"""Flushing logs in jobs, one job per log at a time.

Who asks while a job is under way waits for the next one, together with everybody else who came meanwhile: fifty writers
that want their batch on disk share one fsync (group commit).
"""

from collections.abc import Callable

from quire.seams import Jobs
from quire.storage.log import Log
from quire.storage.log_flush import FlushPlan

Then = Callable[[], None]


class _Round:
    """Those who wait for the same flush, and how far they want it to go."""

    __slots__ = ("otherwises", "thens", "up_to")

    def __init__(self) -> None:
        self.up_to = 0
        self.thens: list[Then] = []
        self.otherwises: list[Then] = []

    def join(self, up_to: int, then: Then | None, otherwise: Then | None) -> None:
        self.up_to = max(self.up_to, up_to)
        if then is not None:
            self.thens.append(then)
        if otherwise is not None:
            self.otherwises.append(otherwise)


class Flusher:
    def __init__(self, jobs: Jobs, failed: Callable[[Exception], None]) -> None:
        self._jobs = jobs
        self._failed = failed
        self._next: dict[Log, _Round] = {}

    def flush(
        self, log: Log, then: Then | None = None, otherwise: Then | None = None, *, up_to: int | None = None
    ) -> None:
        """Makes what is in the log now (or below `up_to`) durable, then calls `then` on the event loop.

        If the disk fails, or is full, `otherwise` is called instead; if the log is deleted first, neither.
        """
        self._next.setdefault(log, _Round()).join(log.end_offset if up_to is None else up_to, then, otherwise)
        if not log.flushing:
            _call(self._start(log))

    def _start(self, log: Log) -> list[Then]:
        """Begins the next round, if somebody waits for one; returns those who need not, or cannot, wait for it."""
        this = self._next.pop(log, None)
        if this is None:
            return []
        try:
            plan = log.start_flush(this.up_to)
        except OSError as error:
            # A file that is not open, and now cannot be.
            self._failed(error)
            return this.otherwises
        if plan is None:
            return this.thens
        self._jobs.submit(
            plan.run, lambda _: self._flushed(log, plan, this), lambda error: self._not_flushed(log, this, error)
        )
        return []

    def _flushed(self, log: Log, plan: FlushPlan, this: _Round) -> None:
        if log.closed:
            self._next.pop(log, None)
            return
        log.finish_flush(plan)
        # First the next round: the disk works while these are told, and whatever becomes of that.
        _call(this.thens + self._start(log))

    def _not_flushed(self, log: Log, this: _Round, error: Exception) -> None:
        following = self._next.pop(log, None) or _Round()
        if not log.closed:
            log.fail_flush()
            self._failed(error)
            _call(this.otherwises + following.otherwises)


def _call(thens: list[Then]) -> None:
    for then in thens:
        then()
