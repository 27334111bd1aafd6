"""Runs long searches for a timestamp in jobs; see `quire.storage.time_lookup.time_search`."""

import errno
from collections.abc import Callable

from quire.protocol.errors import ApiError, ErrorCode
from quire.seams import Jobs
from quire.storage.few_jobs import FewJobs
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.time_lookup.time_search import TimeSearch

_JOBS_AT_ONCE = 2


class Searcher:
    def __init__(self, jobs: Jobs, failed: Callable[[Exception], None]) -> None:
        self._jobs = FewJobs(jobs, _JOBS_AT_ONCE)
        self._failed = failed

    def search(
        self, search: TimeSearch, then: Callable[[TimeSearch | None], None], refuse: Callable[[ApiError], object]
    ) -> None:
        """Calls `then` when the search has run; with None if its segment was deleted and the lookup must start again.

        `refuse` is called instead if the segment is damaged or cannot be read.
        """

        def failed(error: Exception) -> None:
            if isinstance(error, DamagedBatchError):
                search.segment.report(error)
                refuse(error)
            elif isinstance(error, OSError) and error.errno == errno.EBADF:
                # The event loop closed the file because its segment was deleted or replaced.
                then(None)
            elif isinstance(error, ApiError):
                refuse(error)
            else:
                self._failed(error)
                refuse(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{search} could not be searched: {error}"))

        self._jobs.submit(search.run, lambda _: then(search), failed)
