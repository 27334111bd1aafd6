"""Virtual time: the simulated Clock seam. Nothing waits; the clock jumps to the next event.

Events due at the same instant run in the order they were asked for, which makes a run repeatable. A batch is everything
due at one instant; `call_soon` callbacks run after it, as they do after one round of a real event loop. A callback may
raise (a simulated crash does): the events not yet run stay in the queue and the next step goes on with them.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

LIVELOCK_STEPS = 100_000
"""So many batches without time passing is a loop of call_soon, not progress."""


class SimTimer:
    __slots__ = ("_callback", "sequence", "when_ms")

    def __init__(self, when_ms: float, sequence: int, callback: Callable[[], None]) -> None:
        self.when_ms = when_ms
        self.sequence = sequence
        self._callback: Callable[[], None] | None = callback

    @property
    def cancelled(self) -> bool:
        return self._callback is None

    def cancel(self) -> None:
        self._callback = None

    def run(self) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


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
        timer = SimTimer(self._monotonic_ms + max(0.0, delay_ms), self._sequence, callback)
        self._sequence += 1
        heappush(self._timers, (timer.when_ms, timer.sequence, timer))
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def jump_wall(self, by_ms: int) -> None:
        """Moves the wall clock, as an operator or NTP would; timers do not notice."""
        self._wall_ms += by_ms

    def step(self) -> bool:
        """Runs the next batch and what it asked to be called soon; False when there is nothing left to do."""
        if not self._soon:
            upcoming = self._next_timer()
            if upcoming is None:
                return False
            self._advance_to(upcoming.when_ms)
        self._steps_at_this_instant += 1
        assert self._steps_at_this_instant < LIVELOCK_STEPS, "time stands still: callbacks keep asking for each other"
        batch_end = self._sequence
        while (timer := self._next_timer()) and timer.when_ms <= self._monotonic_ms and timer.sequence < batch_end:
            heappop(self._timers)
            timer.run()
        for _ in range(len(self._soon)):
            self._soon.popleft()()
        return True

    def run_for(self, duration_ms: float) -> None:
        """Runs everything due in the next `duration_ms` and leaves the clock exactly there."""
        end_ms = self._monotonic_ms + duration_ms
        while self._soon or ((timer := self._next_timer()) and timer.when_ms <= end_ms):
            self.step()
        self._advance_to(end_ms)

    def run_until(self, condition: Callable[[], bool], limit_ms: float = 60_000) -> None:
        """Steps until `condition` holds; a condition not met within `limit_ms` of virtual time fails the test."""
        end_ms = self._monotonic_ms + limit_ms
        while not condition():
            upcoming = self._next_timer()
            assert self._soon or upcoming, "nothing is left to happen, and what was waited for did not"
            assert self._soon or (upcoming and upcoming.when_ms <= end_ms), f"did not happen within {limit_ms} ms"
            self.step()

    def run_until_idle(self, limit_ms: float = 600_000) -> None:
        """Steps until no event is left: for simulations without periodic timers."""
        self.run_until(lambda: not self._soon and self._next_timer() is None, limit_ms)

    def _next_timer(self) -> SimTimer | None:
        timers = self._timers
        while timers and timers[0][2].cancelled:
            heappop(timers)
        return timers[0][2] if timers else None

    def _advance_to(self, when_ms: float) -> None:
        if when_ms > self._monotonic_ms:
            self._monotonic_ms = when_ms
            self._steps_at_this_instant = 0


class HostClock:
    """One host's clock: its wall may be wrong by `skew_ms`, and after `stop` nothing it asked for happens any more.

    `stall` is a host that did not run for a while: its clock has gone on, and its timers are late.
    """

    def __init__(self, clock: SimClock, *, skew_ms: int = 0) -> None:
        self._clock = clock
        self._alive = True
        self._stalled_ms = 0.0
        self.skew_ms = skew_ms

    def now_ms(self) -> int:
        return self._clock.now_ms() + self.skew_ms + int(self._stalled_ms)

    def monotonic_ms(self) -> float:
        return self._clock.monotonic_ms() + self._stalled_ms

    def stall(self, duration_ms: float) -> None:
        self._stalled_ms += duration_ms

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> SimTimer:
        return self._clock.call_later(delay_ms, self._while_alive(callback))

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._clock.call_soon(self._while_alive(callback))

    def stop(self) -> None:
        """The host is gone."""
        self._alive = False

    def _while_alive(self, callback: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            if self._alive:
                callback()

        return run
