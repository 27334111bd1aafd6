"""`RateWindow`: bytes per second over the last few samples, as Kafka measures replication quotas.

`replication.quota.window.num` samples of `replication.quota.window.size.seconds` count. The time is that since the
oldest of them began, and at least one sample. Everything before is forgotten: after an idle time the rate may be used
again at once, and after something larger than the whole window allows, the next may follow when the window is over.
"""

from collections import deque


class RateWindow:
    __slots__ = ("_sample_ms", "_samples", "_span_ms", "_total_bytes")

    def __init__(self, samples: int, sample_ms: float) -> None:
        self._sample_ms = sample_ms
        self._span_ms = samples * sample_ms
        self._samples: deque[tuple[float, int]] = deque()
        """When each began, and its bytes."""
        self._total_bytes = 0

    def record(self, size_bytes: int, now_ms: float) -> None:
        self._forget(now_ms)
        self._total_bytes += size_bytes
        if self._samples and now_ms - self._samples[-1][0] < self._sample_ms:
            began_ms, recorded_bytes = self._samples[-1]
            self._samples[-1] = (began_ms, recorded_bytes + size_bytes)
        else:
            self._samples.append((now_ms, size_bytes))

    def room_bytes(self, rate: int, now_ms: float) -> int:
        """How much may follow now without exceeding `rate` bytes per second; negative if that is exceeded."""
        self._forget(now_ms)
        began_ms = self._samples[0][0] if self._samples else now_ms
        return int(rate * max(now_ms - began_ms, self._sample_ms) / 1000) - self._total_bytes

    def is_used_up(self, rate: int, now_ms: float) -> bool:
        """False while nothing was recorded, whatever the rate is: so something is copied in every window."""
        return self.room_bytes(rate, now_ms) <= 0 < self._total_bytes

    def room_again_ms(self, rate: int, now_ms: float, reserve_ms: float) -> float:
        """When there will be room for what the rate allows in `reserve_ms`, or when the window is over."""
        self._forget(now_ms)
        free_ms, left_bytes = now_ms, self._total_bytes
        for began_ms, size_bytes in self._samples:
            if left_bytes * 1000 < rate * self._sample_ms:
                break
            ended_ms = began_ms + self._span_ms
            if rate > 0:
                rested_ms = began_ms + left_bytes * 1000 / rate + reserve_ms
                if rested_ms <= ended_ms:
                    return max(free_ms, rested_ms)
            free_ms = ended_ms
            left_bytes -= size_bytes
        return free_ms

    def _forget(self, now_ms: float) -> None:
        samples = self._samples
        while samples and now_ms - samples[0][0] >= self._span_ms:
            self._total_bytes -= samples.popleft()[1]
