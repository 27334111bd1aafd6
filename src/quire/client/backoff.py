"""How long to wait before a retry: twice as long each time, with jitter so that clients do not retry together."""

from quire.seams import Random


class Backoff:
    """Kafka's retry.backoff.ms rule: base * 2^attempt up to a maximum, then up to 20 % more or less."""

    __slots__ = ("_base_ms", "_max_ms", "_random", "attempts")

    def __init__(self, random: Random, base_ms: float = 50, max_ms: float = 1000) -> None:
        self._random = random
        self._base_ms = base_ms
        self._max_ms = max_ms
        self.attempts = 0

    def next_ms(self) -> float:
        delay_ms: float = min(self._base_ms * 2 ** min(self.attempts, 30), self._max_ms)
        self.attempts += 1
        return delay_ms * (0.8 + self._random.below(401) / 1000)

    def reset(self) -> None:
        self.attempts = 0
