"""`log.cleaner.io.max.bytes.per.second`: the limit for reads and writes of all cleaners together."""

from quire.seams import Clock


class Throttle:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._free_at_ms = 0.0
        """When the work so far would have ended at the allowed rate."""

    def delay_ms(self, size_bytes: int, bytes_per_second: float, begun_ms: float) -> float:
        """How long to wait after `size_bytes` were read and written since `begun_ms`."""
        self._free_at_ms = max(self._free_at_ms, begun_ms) + size_bytes * 1000 / bytes_per_second
        return max(self._free_at_ms - self._clock.monotonic_ms(), 0.0)
