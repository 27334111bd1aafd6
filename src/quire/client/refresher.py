"""Refreshes the metadata of the topics in use: at once when a request has failed because of it, and every few minutes.

Refreshes never overlap, and back off while they fail, so a thousand refused requests cause one Metadata request.
"""

from collections.abc import Callable

from quire.client.backoff import Backoff
from quire.client.cluster import Cluster
from quire.seams import Timer
from quire.steps import perform

MAX_AGE_MS = 300_000.0


class Refresher:
    def __init__(
        self,
        cluster: Cluster,
        topics: Callable[[], list[str]],
        refreshed: Callable[[Exception | None], None],
        *,
        create: bool = False,
    ) -> None:
        self._cluster = cluster
        self._topics = topics
        self._refreshed = refreshed
        self._create = create
        self._backoff = Backoff(cluster.random)
        self._running = False
        self._again = False
        self._timer: Timer | None = None
        self._closed = False

    def request(self) -> None:
        """Refreshes now, or again after the refresh that is running."""
        if self._running:
            self._again = True
        elif self._backoff.attempts == 0 and not self._closed:
            self._run()

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _run(self) -> None:
        if self._closed:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._running, self._again = True, False
        perform(self._cluster.refresh(self._topics(), create=self._create)).when_done(self._done)

    def _done(self, outcome: Exception | None) -> None:
        self._running = False
        if self._closed:
            return
        settled = outcome is None and not self._again
        if settled:
            self._backoff.reset()
        self._timer = self._cluster.clock.call_later(MAX_AGE_MS if settled else self._backoff.next_ms(), self._run)
        self._refreshed(outcome)
