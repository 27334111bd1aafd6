"""The timers of one shard. Each runs its operation in the shard, and all are cancelled with it."""

from collections.abc import Callable, Hashable

from quire.coordinators.runtime.machine import TimedOperation
from quire.seams import Clock, Timer


class ShardTimers:
    __slots__ = ("_clock", "_run", "_timers")

    def __init__(self, clock: Clock, run: Callable[[TimedOperation], None]) -> None:
        self._clock = clock
        self._run = run
        self._timers: dict[Hashable, Timer] = {}

    def schedule(self, key: Hashable, delay_ms: float, operation: TimedOperation) -> None:
        self.cancel(key)

        def fire() -> None:
            # This timer is still the one of the key: scheduling another one would have cancelled it.
            del self._timers[key]
            self._run(operation)

        self._timers[key] = self._clock.call_later(max(delay_ms, 0), fire)

    def cancel(self, key: Hashable) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def cancel_all(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
