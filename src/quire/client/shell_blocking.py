"""The client with blocking calls, as the command line and Spark's tasks use it."""

from types import TracebackType
from typing import Self, TypeVar

from quire.client.cluster import REQUEST_TIMEOUT_MS, Cluster
from quire.client.servers import parse_servers
from quire.client.shell_loop import BlockingLoop
from quire.pending import Pending
from quire.real.random import RealRandom
from quire.steps import Steps, perform

T = TypeVar("T")


class BlockingClient:
    """A cluster and the loop that runs it, for callers that wait for each result."""

    def __init__(
        self, servers: str, *, client_id: str = "quire", request_timeout_ms: float = REQUEST_TIMEOUT_MS
    ) -> None:
        self.loop = BlockingLoop()
        self.cluster = Cluster(
            parse_servers(servers),
            clock=self.loop,
            random=RealRandom(),
            network=self.loop,
            client_id=client_id,
            request_timeout_ms=request_timeout_ms,
        )

    def run(self, steps: Steps[T], timeout_ms: float | None = None) -> T:
        """Runs an operation and returns its result, or raises the exception that ended it."""
        return self.wait(perform(steps), timeout_ms)

    def wait(self, pending: Pending[T | Exception], timeout_ms: float | None = None) -> T:
        outcome = self.loop.run_until(pending, timeout_ms)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def close(self) -> None:
        self.cluster.close()
        self.loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
