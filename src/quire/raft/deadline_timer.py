"""The one timer of the consensus core, set again after each step to the core's next deadline."""

from collections.abc import Callable
from math import inf

from quire.seams import Clock, Timer


class DeadlineTimer:
    __slots__ = ("_clock", "_passed", "_timer")

    def __init__(self, clock: Clock, passed: Callable[[], None]) -> None:
        self._clock = clock
        self._passed = passed
        self._timer: Timer | None = None

    def set(self, deadline_ms: float) -> None:
        """`deadline_ms` is of `Clock.monotonic_ms`; infinity is none."""
        self.cancel()
        if deadline_ms < inf:
            delay_ms = max(0.0, deadline_ms - self._clock.monotonic_ms())
            self._timer = self._clock.call_later(delay_ms, self._passed)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
