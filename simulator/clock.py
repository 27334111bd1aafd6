"""Virtual time: the simulated Clock seam. Nothing waits; the clock jumps to the next event.

Events due at the same instant run in the order in which they were scheduled, which makes a run repeatable. A batch is
everything due at one instant; `call_soon` callbacks run after it, as after one iteration of a real event loop. A
callback may raise (a simulated crash does): the remaining events stay in the queue, and the next step continues with
them.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush

from simulator.process import Process

LIVELOCK_STEPS = 100_000
"""This many batches at one instant are an endless loop of call_soon."""
TICK_MS = 1e-6
"""Time moves on by at least this much for a timer with a delay: a rounding error must not stop it."""


class SimTimer:
    __slots__ = ("callback", "sequence", "when_ms")

    def __init__(self, when_ms: float, sequence: int, callback: Callable[[], None]) -> None:
        self.when_ms = when_ms
        self.sequence = sequence
        self.callback: Callable[[], None] | None = callback
        """None once it has run or was cancelled."""

    @property
    def cancelled(self) -> bool:
        return self.callback is None

    def cancel(self) -> None:
        self.callback = None


class SimClock:
    """The one queue of a simulation. Hosts see it through `HostClock`."""

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._wall_ms = start_ms
        self._monotonic_ms = 0.0
        self._timers: list[tuple[float, int, SimTimer]] = []
        self._soon: deque[Callable[[], None]] = deque()
        self._sequence = 0
        self._steps_at_this_instant = 0

    def now_ms(self) -> int:
        return self._wall_ms + int(self._monotonic_ms)

    def monotonic_ms(self) -> float:
        return self._monotonic_ms

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> SimTimer:
        when_ms = self._monotonic_ms + delay_ms if delay_ms > 0.0 else self._monotonic_ms
        timer = SimTimer(when_ms, self._sequence, callback)
        self._sequence += 1
        heappush(self._timers, (when_ms, timer.sequence, timer))
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def jump_wall(self, by_ms: int) -> None:
        """Moves the wall clock, as an operator or NTP would; timers are not affected."""
        self._wall_ms += by_ms

    def step(self) -> bool:
        """Runs the next batch and its call_soon callbacks; False if there is nothing left to do."""
        timers, soon = self._timers, self._soon
        if not soon:
            upcoming_ms = self._next_ms()
            if upcoming_ms is None:
                return False
            self._advance_to(upcoming_ms)
        self._steps_at_this_instant += 1
        assert self._steps_at_this_instant < LIVELOCK_STEPS, "time stands still: callbacks call each other forever"
        now_ms, batch_end = self._monotonic_ms, self._sequence
        while timers:
            when_ms, sequence, timer = timers[0]
            if when_ms > now_ms or sequence >= batch_end:
                break
            heappop(timers)
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback()
        for _ in range(len(soon)):
            soon.popleft()()
        return True

    def run_for(self, duration_ms: float) -> None:
        """Runs everything due in the next `duration_ms` and leaves the clock exactly there."""
        end_ms = self._monotonic_ms + duration_ms
        while self._soon or ((next_ms := self._next_ms()) is not None and next_ms <= end_ms):
            self.step()
        self._advance_to(end_ms)

    def run_until(self, condition: Callable[[], bool], limit_ms: float = 60_000) -> None:
        """Steps until `condition` holds; a condition not met within `limit_ms` of virtual time fails the test."""
        end_ms = self._monotonic_ms + limit_ms
        while not condition():
            next_ms = self._monotonic_ms if self._soon else self._next_ms()
            assert next_ms is not None, "nothing is left to do, and the condition was never met"
            assert next_ms <= end_ms, f"not met within {limit_ms} ms"
            self.step()

    def run_until_idle(self, limit_ms: float = 600_000) -> None:
        """Steps until no event is left: for simulations without periodic timers."""
        self.run_until(lambda: not self._soon and self._next_ms() is None, limit_ms)

    def _next_ms(self) -> float | None:
        """When the next timer is due that was not cancelled."""
        timers = self._timers
        while timers and timers[0][2].callback is None:
            heappop(timers)
        return timers[0][0] if timers else None

    def _advance_to(self, when_ms: float) -> None:
        if when_ms > self._monotonic_ms:
            self._monotonic_ms = when_ms
            self._steps_at_this_instant = 0


class HostTimer:
    """Implements `quire.seams.Timer`."""

    __slots__ = ("_callback", "_clock", "_due_ms", "_timer")

    def __init__(self, clock: "HostClock", delay_ms: float, callback: Callable[[], None]) -> None:
        self._clock = clock
        self._due_ms = clock.monotonic_ms() + delay_ms
        self._callback: Callable[[], None] | None = callback
        self._timer = clock.in_the_world(delay_ms, self._fire)
        clock.pending[self] = None

    @property
    def cancelled(self) -> bool:
        return self._callback is None

    def cancel(self) -> None:
        self._callback = None
        self._timer.cancel()
        self._clock.pending.pop(self, None)

    def rate_changed(self) -> None:
        """The host's clock shows its time earlier or later than expected."""
        self._timer.cancel()
        self._timer = self._clock.in_the_world(self._due_ms - self._clock.monotonic_ms(), self._fire)

    def _fire(self) -> None:
        self._clock.pending.pop(self, None)
        self._clock.process.run(self._run)

    def _run(self) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


class HostClock:
    """One host's clock: wrong by `skew_ms`, too fast or too slow by its rate, and silent while its process is paused.

    Timers follow it: at a rate of 1.1 a timer of 100 ms comes after 91 ms of the world's time, and the host sees 100
    ms. A timer comes when the host's clock shows its time, as in an event loop, also if the rate changes meanwhile.
    After `stop` none comes.
    """

    def __init__(self, clock: SimClock, *, skew_ms: int = 0, rate: float = 1.0, process: Process | None = None) -> None:
        self._clock = clock
        self.process = process or Process(clock)
        self.skew_ms = skew_ms
        self._rate = rate
        self._since_ms = clock.monotonic_ms()
        self._ahead_ms = 0.0
        self.pending: dict[HostTimer, None] = {}
        """The timers that have neither come nor been cancelled, in the order in which they were set."""

    def now_ms(self) -> int:
        return self._clock.now_ms() + self.skew_ms + int(self.ahead_ms())

    def monotonic_ms(self) -> float:
        now_ms = self._clock._monotonic_ms
        return now_ms + (self._ahead_ms + (self._rate - 1.0) * (now_ms - self._since_ms))

    def ahead_ms(self) -> float:
        """How far it is ahead of the world's clock, besides its skew."""
        return self._ahead_ms + (self._rate - 1.0) * (self._clock.monotonic_ms() - self._since_ms)

    def drift(self, rate: float) -> None:
        """From now on it runs at this rate: 1.1 is a tenth too fast."""
        self._ahead_ms = self.ahead_ms()
        self._since_ms = self._clock.monotonic_ms()
        self._rate = rate
        for timer in self.pending:
            timer.rate_changed()

    def stall(self, duration_ms: float) -> None:
        """Time passes in the middle of a callback; timers are late afterwards."""
        self._ahead_ms += duration_ms

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> HostTimer:
        return HostTimer(self, max(0.0, delay_ms), callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._clock.call_soon(partial(self.process.run, callback))

    def stop(self) -> None:
        """The host is gone."""
        self.process.end()

    def in_the_world(self, delay_ms: float, callback: Callable[[], None]) -> SimTimer:
        """Calls back after `delay_ms` of this clock, also if its process is paused."""
        world_ms = max(TICK_MS, delay_ms / self._rate) if delay_ms > 0 else 0.0
        return self._clock.call_later(world_ms, callback)
