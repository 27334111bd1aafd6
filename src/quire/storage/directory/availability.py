"""Whether a data directory can be used: it works, it has no room, or its disk has failed.

A disk that fails takes its directory offline and nothing else: the first OSError is reported once, and every later use
gets KAFKA_STORAGE_ERROR. A disk that is full has not failed, and neither has one on a machine that is out of file
descriptors: writers get KAFKA_STORAGE_ERROR, background writes are retried, and everything continues when there is
room.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from quire.protocol.errors import ApiError, ErrorCode
from quire.storage.errors import is_shortage

_log = logging.getLogger("quire.storage")


class Availability:
    __slots__ = ("_full_lately", "_path", "_report", "failure", "is_full")

    def __init__(self, path: str, report: Callable[[Exception, bool], None]) -> None:
        """`report` is called with each error, and whether that one took the directory offline."""
        self._path = path
        self._report = report
        self._full_lately = False
        """Whether a write found no room since the last call of `note_room`."""
        self.failure: Exception | None = None
        """Why the directory is offline; None while it works."""
        self.is_full = False

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """An OSError within becomes KAFKA_STORAGE_ERROR, and takes the directory offline unless it is just full."""
        if self.failure is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self._path} is offline: {self.failure}")
        try:
            yield
        except OSError as error:
            self.fail(error)
            became = "is full" if self.failure is None else "went offline"
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self._path} {became}: {error}") from error

    def fail(self, error: Exception) -> None:
        """Takes the directory offline at the first error, unless there is merely no room or no descriptor."""
        goes_offline = not is_shortage(error) and self.failure is None
        if goes_offline:
            self.begin_offline(error)
        elif is_shortage(error):
            self._note_full(error)
        self._report(error, goes_offline)

    def begin_offline(self, error: Exception) -> None:
        """For a directory that could not be opened: it has no user yet that must be notified."""
        self.failure = error
        _log.error("the data directory %s is offline: %s", self._path, error)

    def note_room(self) -> None:
        """Called at intervals: no write has failed for want of room since the last call."""
        if self.is_full and not self._full_lately:
            self.is_full = False
            _log.info("%s has room again", self._path)
        self._full_lately = False

    def _note_full(self, error: Exception) -> None:
        if not self.is_full:
            _log.error("nothing can be written to %s until there is room again: %s", self._path, error)
        self.is_full = self._full_lately = True
