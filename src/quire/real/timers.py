"""Timers in one heap, and the time they are measured on: the part of the Clock seam that all real clocks share.

A long-polling fetch sets a timer and nearly always cancels it. Both are cheap here: cancelling only marks the entry,
and marked entries are swept out when they are the majority.

`RealClock` runs due timers on an asyncio event loop, the client's `BlockingLoop` on a selector. This module does not
import asyncio, because the command line would start later.
"""

import time
from collections.abc import Callable
from heapq import heapify, heappop, heappush

_SWEEP_AT_LEAST = 256


class RealTimer:
    __slots__ = ("callback", "timers")

    def __init__(self, timers: "Timers", callback: Callable[[], None]) -> None:
        self.timers = timers
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self.timers.cancelled += 1


class Timers:
    """A subclass calls `_run_due` in time: when `_set_wakeup` said so, or when it looks at the first timer itself."""

    def __init__(self) -> None:
        self._timers: list[tuple[float, int, RealTimer]] = []
        self.cancelled = 0
        """How many entries of the heap are marked."""
        self._sequence = 0
        self._wakeup_at = float("-inf")
        """`_set_wakeup` is called for timers that are due before this."""

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
        if at < self._wakeup_at:
            self._set_wakeup(at)
        return timer

    def _set_wakeup(self, at: float) -> None:
        raise NotImplementedError

    def _run(self, callback: Callable[[], None]) -> None:
        callback()

    def _run_due(self) -> None:
        now = time.monotonic() * 1000
        while self._timers and (self._timers[0][0] <= now or self._timers[0][2].callback is None):
            timer = heappop(self._timers)[2]
            callback = timer.callback
            if callback is None:
                self.cancelled -= 1
            else:
                timer.callback = None
                self._run(callback)

    def _sweep(self) -> None:
        self._timers = [entry for entry in self._timers if entry[2].callback is not None]
        heapify(self._timers)
        self.cancelled = 0
