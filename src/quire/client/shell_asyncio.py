"""The client on an asyncio loop: the same cluster, producer and consumer, waited for with `await`.

    async with AsyncClient("127.0.0.1:9092") as client:
        producer = Producer(client.cluster)
        await client.run(producer.prepare("events"))
        producer.send("events", b"hello")
        await client.wait(producer.flush())

Everything runs on the loop on which the client was created; other threads must not use the client.
"""

import asyncio
import selectors
import socket
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from quire.client.cluster import REQUEST_TIMEOUT_MS, Cluster
from quire.client.servers import parse_servers
from quire.client.shell_socket import Attempt
from quire.pending import Pending
from quire.real.clock import RealClock
from quire.real.random import RealRandom
from quire.seams import Receiver, Transport
from quire.steps import Steps, perform

T = TypeVar("T")


class AsyncioLoop(RealClock):
    """Clock and Connector on a running asyncio loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._lookups: set[asyncio.Task[None]] = set()

    def connect(
        self,
        host: str,
        port: int,
        connected: Callable[[Transport], Receiver],
        failed: Callable[[Exception], None],
    ) -> None:
        lookup = self._loop.create_task(self._connect(host, port, connected, failed))
        self._lookups.add(lookup)
        lookup.add_done_callback(self._lookups.discard)

    async def _connect(
        self,
        host: str,
        port: int,
        connected: Callable[[Transport], Receiver],
        failed: Callable[[Exception], None],
    ) -> None:
        """The loop resolves the name in a thread, so that a slow name server does not block the loop."""
        try:
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            failed(OSError(f"the name {host} does not resolve ({error.strerror})"))
            return
        Attempt(self, [(family, address) for family, _, _, _, address in found], connected, failed)

    def watch(self, connection: socket.socket | int, events: int, callback: Callable[[int], None]) -> None:
        """Calls `callback` when the socket is ready for `events`, which replace the previous ones; 0 stops it."""
        if events & selectors.EVENT_READ:
            self._loop.add_reader(connection, callback, selectors.EVENT_READ)
        else:
            self._loop.remove_reader(connection)
        if events & selectors.EVENT_WRITE:
            self._loop.add_writer(connection, callback, selectors.EVENT_WRITE)
        else:
            self._loop.remove_writer(connection)


class AsyncClient:
    """A cluster on the running loop, for callers that await each result."""

    def __init__(
        self, servers: str, *, client_id: str = "quire", request_timeout_ms: float = REQUEST_TIMEOUT_MS
    ) -> None:
        self._loop = asyncio.get_running_loop()
        shell = AsyncioLoop(self._loop)
        self.cluster = Cluster(
            parse_servers(servers),
            clock=shell,
            random=RealRandom(),
            network=shell,
            client_id=client_id,
            request_timeout_ms=request_timeout_ms,
        )

    async def run(self, steps: Steps[T]) -> T:
        """Runs an operation and returns its result, or raises the exception that ended it; it can be cancelled."""
        try:
            outcome = await self.wait(perform(steps))
        finally:
            steps.close()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def wait(self, pending: Pending[T]) -> T:
        """Waits for `flush` of a producer, `arrival` of a consumer or `done` of a delivery; returns exceptions too."""
        future: asyncio.Future[T] = self._loop.create_future()
        pending.when_done(partial(_settle, future))
        return await future

    def close(self) -> None:
        self.cluster.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _settle(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():  # the waiting task may have been cancelled
        future.set_result(value)
