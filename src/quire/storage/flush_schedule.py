"""Flushing logs by time: what is written to a log with `flush.ms` is on its way to the disk at most so long later.

Appending knows nothing of this. Each such log is looked at every now and then (every `flush.ms`, or more often if
`log.flush.scheduler.interval.ms` says so), and is flushed when the next look would come too late for what may have been
written since the last one that found nothing. So more frequent looks mean later, and fewer, flushes. Logs that are
looked at equally often share a timer; where no log has a `flush.ms` there is none. A node has one of these.
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
        """When all that was in the log was last on disk, or on its way."""


class FlushSchedule:
    def __init__(self, clock: Clock, longest_pause_ms: int) -> None:
        """`longest_pause_ms` is log.flush.scheduler.interval.ms."""
        self._clock = clock
        self._longest_pause_ms = longest_pause_ms
        self._watched: dict[int, dict[Log, _Watched]] = {}
        """By the pause between two looks."""

    def watch(self, log: Log, flush: Callable[[Log], None]) -> None:
        """Has a log flushed from now on as its `flush.ms` says; to be told again when that changes."""
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
        self._clock.call_later(pause_ms, lambda: self._look(pause_ms))

    def _look(self, pause_ms: int) -> None:
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
