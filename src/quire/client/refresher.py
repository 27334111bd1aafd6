"""Refreshes the metadata of the topics in use: at once when a request has failed because of it, and every few minutes.

Refreshes never overlap, so a thousand refused requests cause one Metadata request. One that failed is retried after a
back-off, and one that did not help, because a partition has no leader still, is repeated after one.
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
        self._rests_until_ms = 0.0
        """The back-off after the last refresh: what is requested meanwhile happens afterwards."""
        self._timer: Timer | None = None
        self._closed = False

    def request(self) -> None:
        """Refreshes now, or after the back-off of the last refresh if that has just ended or is still running."""
        if self._running:
            self._again = True
        elif not self._closed:
            rest_ms = self._rests_until_ms - self._cluster.clock.monotonic_ms()
            if rest_ms <= 0:
                self._backoff.reset()
                self._run()
            else:
                self._run_in(rest_ms)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _run_in(self, delay_ms: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._cluster.clock.call_later(delay_ms, self._run)

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
        rest_ms = self._backoff.next_ms()
        self._rests_until_ms = self._cluster.clock.monotonic_ms() + rest_ms
        self._run_in(MAX_AGE_MS if outcome is None and not self._again else rest_ms)
        self._refreshed(outcome)
