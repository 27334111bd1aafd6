"""Creates a client from the `kafka.*` options. Clients are created where they are used, and never pickled."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pyspark_quire.options import CLIENT_ID, POLL_TIMEOUT_MS, REQUEST_TIMEOUT_MS, SERVERS, Options
from quire.client.backoff import Backoff
from quire.client.cluster import Cluster
from quire.client.errors import DisconnectedError, TimedOutError, UnreachableError
from quire.client.shell_blocking import BlockingClient
from quire.steps import Steps, sleep

T = TypeVar("T")

PASSING = (DisconnectedError, TimedOutError, UnreachableError)
"""The errors of a cluster that is restarting."""


def connect(options: Options) -> BlockingClient:
    """A client of the cluster that the options name; it connects at the first request."""
    return BlockingClient(
        options.required(SERVERS), client_id=options[CLIENT_ID], request_timeout_ms=options[REQUEST_TIMEOUT_MS]
    )


_idle: dict[tuple[str, str, int], BlockingClient] = {}


@contextmanager
def borrow(options: Options) -> Iterator[BlockingClient]:
    """A client for one task.

    Spark's Python workers run many tasks, so it is kept for the next, with its connections; but not after a failure,
    because requests may still be in flight.
    """
    key = (options.required(SERVERS), options[CLIENT_ID], options[REQUEST_TIMEOUT_MS])
    client = _idle.pop(key, None) or connect(options)
    try:
        yield client
    except BaseException:
        client.close()
        raise
    before = _idle.pop(key, None)
    if before is not None:
        before.close()
    _idle[key] = client


def run_patiently(client: BlockingClient, make: Callable[[Cluster], Steps[T]], patience_ms: float) -> T:
    """Runs an operation, and retries it for this time while the cluster cannot be reached."""
    backoff = Backoff(client.cluster.random, max_ms=500)
    deadline_ms = client.loop.monotonic_ms() + patience_ms
    while True:
        try:
            return client.run(make(client.cluster))
        except PASSING:
            if client.loop.monotonic_ms() >= deadline_ms:
                raise
            client.run(sleep(client.loop, backoff.next_ms()))


class Connection:
    """The client of a reader in a process beside the driver: opened at the first request, and never pickled.

    The first request fails at once if no broker is reachable, because the address is probably wrong. Later ones wait
    for the cluster to return.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._client: BlockingClient | None = None
        self._worked = False

    def run(self, make: Callable[[Cluster], Steps[T]]) -> T:
        if self._client is None:
            self._client = connect(self._options)
        result = run_patiently(self._client, make, self._options[POLL_TIMEOUT_MS] if self._worked else 0)
        self._worked = True
        return result

    def monotonic_ms(self) -> float:
        if self._client is None:
            self._client = connect(self._options)
        return self._client.loop.monotonic_ms()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_client": None, "_worked": False}
