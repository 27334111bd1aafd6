"""The client on plain blocking calls, as the command line uses it: ask, wait, have the answer."""

import os
import random
import uuid
from types import TracebackType
from typing import Self, TypeVar

from quire.client.cluster import REQUEST_TIMEOUT_MS, Cluster
from quire.client.servers import parse_servers
from quire.client.shell_loop import BlockingLoop
from quire.pending import Pending
from quire.steps import Steps, perform

T = TypeVar("T")


class SystemRandom:
    """Chance from the operating system, in the shape of the Random seam."""

    def random_bytes(self, size: int) -> bytes:
        return os.urandom(size)

    def below(self, limit: int) -> int:
        return random.randrange(limit)

    def uuid(self) -> bytes:
        return uuid.uuid4().bytes


class BlockingClient:
    """A cluster and the loop that runs it, for callers who wait for each thing they ask."""

    def __init__(
        self, servers: str, *, client_id: str = "quire", request_timeout_ms: float = REQUEST_TIMEOUT_MS
    ) -> None:
        self.loop = BlockingLoop()
        self.cluster = Cluster(
            parse_servers(servers),
            clock=self.loop,
            random=SystemRandom(),
            network=self.loop,
            client_id=client_id,
            request_timeout_ms=request_timeout_ms,
        )

    def run(self, steps: Steps[T], timeout_ms: float | None = None) -> T:
        """Carries an operation out and returns its result, or raises what ended it."""
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
