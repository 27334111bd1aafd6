"""`ReplicationQuota`: how many bytes of throttled replicas this broker may send, or receive, per second (KIP-73).

A leader has one for what it sends, and a follower one for what it copies: `throttles.py` sets them. Whoever moves bytes
asks `is_used_up` before, and calls `record` afterwards. `wait` wakes it when there is room again, with one timer for
all. Without throttled topics nobody asks.
"""

from typing import Protocol

from quire.config.units import LONG_MAX
from quire.node.replicas.rate_window import RateWindow
from quire.seams import Clock, Timer

UNLIMITED = LONG_MAX
RESERVE_MS = 100.0
"""A quota that was used up opens again when there is room for this long, so that not every batch is a fetch."""


class QuotaWaiter(Protocol):
    def has_quota(self) -> None:
        """There may be room. It must not move bytes within this call."""


class ReplicationQuota:
    __slots__ = ("_clock", "_timer", "_used_up_until_ms", "_waiters", "_window", "rate", "throttled")

    def __init__(self, clock: Clock, window: RateWindow, rate: int = UNLIMITED) -> None:
        self._clock = clock
        self._window = window
        self.rate = rate
        """Bytes per second."""
        self.throttled: dict[str, frozenset[int] | None] = {}
        """The throttled partitions of each topic; None for all of them."""
        self._used_up_until_ms = 0.0
        self._waiters: dict[QuotaWaiter, None] = {}
        self._timer: Timer | None = None

    def is_throttled(self, topic: str, index: int) -> bool:
        if topic not in self.throttled:
            return False
        indexes = self.throttled[topic]
        return indexes is None or index in indexes

    @property
    def is_used_up(self) -> bool:
        return self._clock.monotonic_ms() < self._used_up_until_ms

    @property
    def left_ms(self) -> float:
        """How long it stays used up; 0 if it is not."""
        return max(0.0, self._used_up_until_ms - self._clock.monotonic_ms())

    @property
    def room_bytes(self) -> int:
        """What may be moved now; at least one batch may, unless the quota is used up."""
        return max(0, self._window.room_bytes(self.rate, self._clock.monotonic_ms()))

    def record(self, size_bytes: int) -> None:
        self._window.record(size_bytes, self._clock.monotonic_ms())
        self._measure()

    def set_rate(self, rate: int) -> None:
        """What was recorded before counts for the new rate too."""
        self.rate = rate
        self._used_up_until_ms = 0.0
        self._measure()

    def _measure(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if self.rate != UNLIMITED and self._window.is_used_up(self.rate, now_ms):
            self._used_up_until_ms = self._window.room_again_ms(self.rate, now_ms, RESERVE_MS)

    # --- Waiting

    def wait(self, waiter: QuotaWaiter) -> None:
        """Calls `has_quota` once, when there is room again. A waiter that waits already keeps its place."""
        self._waiters[waiter] = None
        if self._timer is None:
            self._timer = self._clock.call_later(self.left_ms, self._wake)

    def _wake(self) -> None:
        self._timer = None
        if self.is_used_up:
            # What was in flight came later, or the rate was lowered.
            self._timer = self._clock.call_later(self.left_ms, self._wake)
            return
        # The first one of this time is the last one of the next time.
        first, *others = self._waiters
        self._waiters = {}
        for waiter in (*others, first):
            waiter.has_quota()

    def wake_now(self) -> None:
        """The settings have changed: whoever waits looks again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            waiter.has_quota()

    def close(self) -> None:
        self._waiters = {}
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
