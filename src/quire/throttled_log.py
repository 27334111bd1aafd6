"""Log lines that clients can cause as often as they like: the first few of each kind per minute, then their number.

A client's error is worth a line, but not one per connection: a client that opens thousands of connections could fill
the disk with the log, or hide other lines in it. The kind of a line is its template, unless the caller names another.
Clients may influence that name too, so there are at most `KINDS` of them in a minute; all further lines are one kind.
"""

import logging
from collections.abc import Callable

from quire.seams import Clock

FEW = 5
KINDS = 64
PERIOD_MS = 60_000
LEFT_OUT = "more lines like this were left out in the last minute"
"""The text of the log line with their number, by which tests find it."""
_OTHERS = "various"


class _Kind:
    """How many lines of one kind there were since the first one in this period."""

    __slots__ = ("began_ms", "count")

    def __init__(self, began_ms: float) -> None:
        self.began_ms = began_ms
        self.count = 0


class ThrottledLog:
    """Has the methods of a logger, with `kind` as an additional argument for templates that several kinds share."""

    def __init__(self, log: logging.Logger, clock: Clock, few: int = FEW) -> None:
        self._log = log
        self._clock = clock
        self._few = few
        self._kinds: dict[str, _Kind] = {}

    def info(self, template: str, *values: object, kind: str | None = None) -> None:
        self._say(kind or template, lambda: self._log.info(template, *values))

    def warning(self, template: str, *values: object, kind: str | None = None) -> None:
        self._say(kind or template, lambda: self._log.warning(template, *values))

    def error(self, template: str, *values: object, kind: str | None = None) -> None:
        self._say(kind or template, lambda: self._log.error(template, *values))

    def exception(self, template: str, *values: object, kind: str | None = None) -> None:
        """Call this in the `except` block."""
        self._say(kind or template, lambda: self._log.exception(template, *values))

    def _say(self, name: str, log: Callable[[], None]) -> None:
        now_ms = self._clock.monotonic_ms()
        if name not in self._kinds and len(self._kinds) >= KINDS:
            self._forget_before(now_ms - PERIOD_MS)
            if len(self._kinds) >= KINDS:
                name = _OTHERS
        kind = self._kinds.get(name)
        if kind is None or now_ms - kind.began_ms >= PERIOD_MS:
            kind = self._kinds[name] = _Kind(now_ms)
        kind.count += 1
        if kind.count <= self._few:
            log()
        elif kind.count == self._few + 1:
            self._clock.call_later(kind.began_ms + PERIOD_MS - now_ms, lambda: self._log_summary(name, kind))

    def _forget_before(self, oldest_ms: float) -> None:
        self._kinds = {name: kind for name, kind in self._kinds.items() if kind.began_ms > oldest_ms}

    def _log_summary(self, name: str, kind: _Kind) -> None:
        self._log.warning("%d %s: %s", kind.count - self._few, LEFT_OUT, name)
