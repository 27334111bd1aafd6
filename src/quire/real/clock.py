"""Time of the operating system, and timers on the event loop.

All timers are in one heap of our own, with one timer of the loop set for the earliest of them. A long-polling fetch
asks for a timer and nearly always takes it back; here both cost a fraction of what the loop's own timers do: cancelling
only marks the entry, and marked entries are swept out when they are the majority.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from heapq import heapify, heappop, heappush

_log = logging.getLogger("quire.clock")

_SWEEP_AT_LEAST = 256


class RealTimer:
    __slots__ = ("callback", "clock")

    def __init__(self, clock: "RealClock", callback: Callable[[], None]) -> None:
        self.clock = clock
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self.clock.cancelled += 1


class RealClock:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timers: list[tuple[float, int, RealTimer]] = []
        self.cancelled = 0
        """How many entries of the heap are marked."""
        self._sequence = 0
        self._wakeup: asyncio.TimerHandle | None = None
        self._wakeup_at = 0.0
        self._soon: list[Callable[[], None]] = []

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> RealTimer:
        if self.cancelled > _SWEEP_AT_LEAST and self.cancelled * 2 > len(self._timers):
            self._sweep()
        timer = RealTimer(self, callback)
        at = time.monotonic() * 1000 + delay_ms
        self._sequence += 1
        heappush(self._timers, (at, self._sequence, timer))
        if self._wakeup is None or at < self._wakeup_at:
            self._set_wakeup(at)
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        if not self._soon:
            self._loop.call_soon(self._run_soon)
        self._soon.append(callback)

    def _sweep(self) -> None:
        self._timers = [entry for entry in self._timers if entry[2].callback is not None]
        heapify(self._timers)
        self.cancelled = 0

    def _run_soon(self) -> None:
        callbacks, self._soon = self._soon, []
        for callback in callbacks:
            _run(callback)

    def _set_wakeup(self, at: float) -> None:
        if self._wakeup is not None:
            self._wakeup.cancel()
        self._wakeup_at = at
        # The loop counts whole milliseconds: rounded down it would wake before the timer is due, again and again.
        delay_ms = int(at - time.monotonic() * 1000) + 1
        self._wakeup = self._loop.call_later(max(delay_ms, 0) / 1000, self._run_due)

    def _run_due(self) -> None:
        self._wakeup = None
        now = time.monotonic() * 1000
        while self._timers and (self._timers[0][0] <= now or self._timers[0][2].callback is None):
            timer = heappop(self._timers)[2]
            callback = timer.callback
            if callback is None:
                self.cancelled -= 1
            else:
                timer.callback = None
                _run(callback)
        # A callback may have set the wake-up for a timer of its own, later than those that were there before.
        if self._timers and (self._wakeup is None or self._timers[0][0] < self._wakeup_at):
            self._set_wakeup(self._timers[0][0])


def _run(callback: Callable[[], None]) -> None:
    """One callback that fails must not take the others of its batch with it."""
    try:
        callback()
    except Exception:
        _log.exception("a timer or a deferred call failed")
