"""Time of the operating system, and timers on an asyncio event loop: the Clock seam.

One timer of the loop is set for the earliest of all timers in the heap (`timers.py`). The loop's own timers cost
several times as much to set and to cancel.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from quire.real.timers import Timers

_log = logging.getLogger("quire.clock")

_NEVER = float("inf")


class RealClock(Timers):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self._wakeup: asyncio.TimerHandle | None = None
        self._wakeup_at = _NEVER
        self._soon: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        if not self._soon:
            self._loop.call_soon(self._run_soon)
        self._soon.append(callback)

    def _run_soon(self) -> None:
        callbacks, self._soon = self._soon, []
        for callback in callbacks:
            self._run(callback)

    def _run(self, callback: Callable[[], None]) -> None:
        """A callback that fails must not keep the others of its batch from running."""
        try:
            callback()
        except Exception:
            _log.exception("a timer or a deferred call failed")

    def _set_wakeup(self, at: float) -> None:
        if self._wakeup is not None:
            self._wakeup.cancel()
        self._wakeup_at = at
        # The loop counts whole milliseconds. Rounded down, it would wake before the timer is due, again and again.
        delay_ms = int(at - time.monotonic() * 1000) + 1
        self._wakeup = self._loop.call_later(max(delay_ms, 0) / 1000, self._wake)

    def _wake(self) -> None:
        self._wakeup = None
        self._wakeup_at = _NEVER
        self._run_due()
        # A callback may have set the wake-up for a timer of its own that is due later than the first one.
        if self._timers and self._timers[0][0] < self._wakeup_at:
            self._set_wakeup(self._timers[0][0])
