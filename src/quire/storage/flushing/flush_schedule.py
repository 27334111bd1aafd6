"""Flushing logs by time: a flush begins at most `flush.ms` after a record was appended.

Appends are not involved. A timer checks each log that has a `flush.ms`, at that interval or more often if
`log.flush.scheduler.interval.ms` is lower. A log is flushed if the next check would be too late for a record that may
have been appended right after the last check that found nothing to flush. So more frequent checks mean later and fewer
flushes. Logs with the same interval share a timer; without any `flush.ms` there is no timer. A node has one schedule.
"""

from collections.abc import Callable

from quire.seams import Clock
from quire.storage.log import Log
from quire.storage.log_config import NEVER

_SHORTEST_PAUSE_MS = 1


class _Watched:
    __slots__ = ("clean_ms", "flush")

    def __init__(self, flush: Callable[[Log], None], clean_ms: float) -> None:
        self.flush = flush
        self.clean_ms = clean_ms
        """When the whole log was last on disk, or a flush of it began."""


class FlushSchedule:
    def __init__(self, clock: Clock, longest_pause_ms: int) -> None:
        """`longest_pause_ms` is log.flush.scheduler.interval.ms."""
        self._clock = clock
        self._longest_pause_ms = longest_pause_ms
        self._watched: dict[int, dict[Log, _Watched]] = {}
        """By the interval between two checks."""

    def watch(self, log: Log, flush: Callable[[Log], None]) -> None:
        """Flushes the log as its `flush.ms` says. The caller must call this again when that setting changes."""
        pause_ms = self._pause_ms(log)
        if pause_ms is None or log in self._watched.get(pause_ms, ()):
            return
        if pause_ms not in self._watched:
            self._watched[pause_ms] = {}
            self._look_later(pause_ms)
        self._watched[pause_ms][log] = _Watched(flush, self._clock.monotonic_ms())

    def _pause_ms(self, log: Log) -> int | None:
        flush_ms = log.config.flush_ms
        return None if flush_ms >= NEVER else max(_SHORTEST_PAUSE_MS, min(flush_ms, self._longest_pause_ms))

    def _look_later(self, pause_ms: int) -> None:
        self._clock.call_later(pause_ms, lambda: self._check(pause_ms))

    def _check(self, pause_ms: int) -> None:
        logs = self._watched[pause_ms]
        now_ms = self._clock.monotonic_ms()
        for log, watched in list(logs.items()):
            if log.closed or self._pause_ms(log) != pause_ms:
                del logs[log]
            elif log.recovery_point >= log.end_offset:
                watched.clean_ms = now_ms
            elif now_ms + pause_ms > watched.clean_ms + log.config.flush_ms:
                watched.clean_ms = now_ms
                watched.flush(log)
        if logs:
            self._look_later(pause_ms)
        else:
            del self._watched[pause_ms]
