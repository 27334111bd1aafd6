"""Time: what the clock says, and being called when it says so."""

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that has been asked for and can be taken back."""

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
        """Runs `callback` after the events at hand: the place to wake waiters once for many appends."""
        ...
