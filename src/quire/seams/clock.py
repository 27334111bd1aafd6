"""Time: a wall clock, a monotonic clock, and calls that are scheduled on it."""

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A scheduled call that can be cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Two clocks and a queue.

    `now_ms` is the wall clock: it is written into records and may jump. `monotonic_ms` only goes forward: durations and
    timers are measured on it.
    """

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> float: ...

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer: ...

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Runs `callback` after the current events, for instance to wake waiters once after many appends."""
        ...
