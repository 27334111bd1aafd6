"""Log lines that clients can cause at will: the first few of a kind in each minute, and then how many there were.

What clients do wrong is worth a line, but not one per connection: whoever opens thousands of them could otherwise fill
the disk with the log, or hide in it. The kind of a line is its template, or what the caller says. Clients may have a
part in that too: beyond `KINDS` of them in a minute, all further ones are one kind.
"""

import logging
from collections.abc import Callable

from quire.seams import Clock

FEW = 5
KINDS = 64
PERIOD_MS = 60_000
_OTHERS = "various"


class _Kind:
    """What was logged of one kind since its first line in this period."""

    __slots__ = ("began_ms", "count")

    def __init__(self, began_ms: float) -> None:
        self.began_ms = began_ms
        self.count = 0


class ThrottledLog:
    """Has a logger's methods, with one more argument where several kinds of lines share a template."""

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._kinds: dict[str, _Kind] = {}

    def warning(self, template: str, *values: object, kind: str | None = None) -> None:
        self._say(kind or template, lambda: self._log.warning(template, *values))

    def error(self, template: str, *values: object, kind: str | None = None) -> None:
        self._say(kind or template, lambda: self._log.error(template, *values))

    def exception(self, template: str, *values: object, kind: str | None = None) -> None:
        """To be called where the exception is handled."""
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
        if kind.count <= FEW:
            log()
        elif kind.count == FEW + 1:
            self._clock.call_later(kind.began_ms + PERIOD_MS - now_ms, lambda: self._sum_up(name, kind))

    def _forget_before(self, oldest_ms: float) -> None:
        self._kinds = {name: kind for name, kind in self._kinds.items() if kind.began_ms > oldest_ms}

    def _sum_up(self, name: str, kind: _Kind) -> None:
        self._log.warning("%d more lines like this were left out in the last minute: %s", kind.count - FEW, name)
