"""Notices that the process did not run for a while: it was stopped, its machine was suspended or overloaded.

Heartbeats that came meanwhile are still unread, so a controller that was frozen must not treat its brokers as silent.
"""


class StallWatch:
    """Call `look` every `interval_ms`, and before each decision that depends on how long others were silent."""

    __slots__ = ("_limit_ms", "_looked_ms")

    def __init__(self, limit_ms: float, now_ms: float) -> None:
        self._limit_ms = limit_ms
        self._looked_ms = now_ms

    @property
    def interval_ms(self) -> float:
        """How often to look, so that no stall longer than the limit goes unnoticed."""
        return self._limit_ms / 2

    def look(self, now_ms: float) -> float:
        """How long the process was paused, or 0 if that was not longer than the limit."""
        gap_ms, self._looked_ms = now_ms - self._looked_ms, now_ms
        return gap_ms if gap_ms > self._limit_ms else 0.0
