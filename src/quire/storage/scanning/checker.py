"""Checks ranges of segments in jobs. Requests for the same range share one check."""

import errno
from collections.abc import Callable

from quire.seams import Jobs
from quire.storage.flushing.flusher import Then
from quire.storage.scanning.range_check import ReadCheck


class Checker:
    def __init__(self, jobs: Jobs, failed: Callable[[Exception], None]) -> None:
        self._jobs = jobs
        self._failed = failed
        self._waiting: dict[str, list[Then]] = {}

    def check(self, check: ReadCheck, then: Then) -> None:
        """Calls `then` when the check has ended: the range is intact, damaged, or cannot be read."""
        subject = check.subject
        if subject in self._waiting:
            self._waiting[subject].append(then)
            return
        self._waiting[subject] = [then]
        self._jobs.submit(check.run, lambda _: self._done(subject, check), lambda error: self._not_done(subject, error))

    def _done(self, subject: str, check: ReadCheck) -> None:
        check.finish()
        self._call_waiting(subject)

    def _not_done(self, subject: str, error: Exception) -> None:
        # The event loop closed the file because its segment was deleted. The next read finds another segment.
        if not (isinstance(error, OSError) and error.errno == errno.EBADF):
            self._failed(error)
        self._call_waiting(subject)

    def _call_waiting(self, subject: str) -> None:
        for then in self._waiting.pop(subject):
            then()
