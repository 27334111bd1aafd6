"""Blocking work on virtual time: the simulated Jobs seam.

Work runs after a random delay, and its result arrives after another, as from a thread pool: jobs finish out of order,
and a crash may happen between the work and its callback.
"""

from collections.abc import Callable
from typing import TypeVar

from quire.seams import Clock
from simulator.fault_counts import Felt, unnoticed
from simulator.random import SimRandom

T = TypeVar("T")

USUAL_JOB_MS = 5.0


class SimJobs:
    """Runs on the clock it is given: with a `HostClock`, a stopped host's jobs never happen."""

    def __init__(
        self, clock: Clock, random: SimRandom, *, longest_ms: float = USUAL_JOB_MS, felt: Felt = unnoticed
    ) -> None:
        self._clock = clock
        self._random = random
        self.longest_ms = longest_ms
        self.felt = felt
        """Called when a job takes longer than usual."""
        self._stopped = False
        self.unfinished = 0

    def submit(
        self,
        work: Callable[[], T],
        done: Callable[[T], None],
        failed: Callable[[Exception], None],
        *,
        computes: bool = False,
    ) -> None:
        assert not self._stopped, "a job was submitted after stop"
        self.unfinished += 1

        def run() -> None:
            if self._stopped:
                return
            try:
                result = work()
            except Exception as error:
                failure = error
                self._later(lambda: failed(failure))
            else:
                self._later(lambda: done(result))

        self._clock.call_later(self._delay_ms(), run)

    def stop(self) -> None:
        self._stopped = True
        self.unfinished = 0

    def _later(self, report: Callable[[], None]) -> None:
        def finish() -> None:
            if not self._stopped:
                self.unfinished -= 1
                report()

        self._clock.call_later(self._delay_ms(), finish)

    def _delay_ms(self) -> float:
        delay_ms = self._random.between(0.0, self.longest_ms)
        if delay_ms > USUAL_JOB_MS:
            self.felt()
        return delay_ms
