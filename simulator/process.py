"""One process on a simulated host: its callbacks run in order, late after a pause, and never after its end.

A paused process is like one that got SIGSTOP: the world continues, and the kernel of its host still accepts connections
and takes bytes for it. Its timers, deliveries and jobs wait, and run in order when it continues.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from simulator.trace import Trace


class Loop(Protocol):
    def call_soon(self, callback: Callable[[], None]) -> None: ...


class Process:
    __slots__ = ("_clock", "_late", "_paused", "_trace", "alive", "name", "runs")

    def __init__(self, clock: Loop, name: str = "", trace: Trace | None = None) -> None:
        """Lines that are traced while a callback runs begin with `name`."""
        self.name = name
        self.alive = True
        self.runs = 0
        """The number of callbacks so far: what the process knows changes only in them."""
        self._clock = clock
        self._trace = trace
        self._paused = False
        self._late: deque[Callable[[], None]] = deque()

    @property
    def paused(self) -> bool:
        return self._paused

    def run(self, callback: Callable[[], None]) -> None:
        """Runs it now, or after the pause."""
        if self._paused:
            self._late.append(callback)
        elif self.alive:
            self._speak(callback)

    def pause(self) -> None:
        self._paused = self.alive

    def resume(self) -> None:
        """What comes before the late callbacks have run waits behind them, so the order stays."""
        self._clock.call_soon(self._catch_up)

    def end(self) -> None:
        self.alive = self._paused = False
        self._late.clear()

    def _catch_up(self) -> None:
        while self._late:
            self._speak(self._late.popleft())
        self._paused = False

    def _speak(self, callback: Callable[[], None]) -> None:
        self.runs += 1
        trace = self._trace
        if trace is None:
            callback()
            return
        before, trace.speaker = trace.speaker, self.name
        try:
            callback()
        finally:
            trace.speaker = before
