"""Flushes many logs of a data directory in jobs, and calls back once."""

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

from quire.protocol.errors import ApiError
from quire.storage.flushing.flusher import Flusher, Then
from quire.storage.log import Log


class FlushAll:
    """One run at a time: at a start, or at a stop."""

    __slots__ = ("_flusher", "_guarded", "_then")

    def __init__(self, flusher: Flusher, guarded: Callable[[], AbstractContextManager[None]]) -> None:
        self._flusher = flusher
        self._guarded = guarded
        self._then: Then | None = None

    def run(self, logs: list[Log], then: Then, before: Callable[[Log], None] | None = None) -> None:
        """Calls `then` when every log is flushed or deleted, or after `end`.

        `before` is called with each log before its flush.
        """
        self._then = then
        left = len(logs)

        def done() -> None:
            nonlocal left
            left -= 1
            if left == 0 and self._then is then:
                self.end()

        if not logs:
            self.end()
            return
        with suppress(ApiError), self._guarded():
            for log in logs:
                if before is not None:
                    before(log)
                self._flusher.flush(log, done, deleted=done)

    def end(self) -> None:
        """The disk has failed or is full, so nothing more can be flushed; or everything is."""
        then, self._then = self._then, None
        if then is not None:
            then()
