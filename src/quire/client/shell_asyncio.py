"""The client on an asyncio loop: the same cluster, producer and consumer, waited for with `await`.

    async with AsyncClient("127.0.0.1:9092") as client:
        producer = Producer(client.cluster)
        await client.run(producer.prepare("events"))
        producer.send("events", b"hello")
        await client.wait(producer.flush())

Everything happens on the loop that the client was made on; other threads must not touch it.
"""

import asyncio
import selectors
import socket
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from quire.client.cluster import REQUEST_TIMEOUT_MS, Cluster
from quire.client.servers import parse_servers
from quire.client.shell_blocking import SystemRandom
from quire.client.shell_socket import Attempt
from quire.pending import Pending
from quire.seams import Listener, Receiver, Timer, Transport
from quire.steps import Steps, perform

T = TypeVar("T")


class AsyncioLoop:
    """Clock and Network on a running asyncio loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lookups: set[asyncio.Task[None]] = set()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(delay_ms / 1000, callback)

    def listen(self, host: str, port: int, accept: Callable[[Transport], Receiver | None]) -> Listener:
        raise NotImplementedError("a client does not listen")

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
        """A name is looked up in a thread of the loop's, so that a slow server of names holds nobody else up."""
        try:
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            failed(OSError(f"the name {host} does not resolve ({error.strerror})"))
            return
        Attempt(self, [(family, address) for family, _, _, _, address in found], connected, failed)

    def watch(self, connection: socket.socket | int, events: int, callback: Callable[[int], None]) -> None:
        """Calls back when the socket is ready for `events`, which replace those watched before; none ends it."""
        if events & selectors.EVENT_READ:
            self._loop.add_reader(connection, callback, selectors.EVENT_READ)
        else:
            self._loop.remove_reader(connection)
        if events & selectors.EVENT_WRITE:
            self._loop.add_writer(connection, callback, selectors.EVENT_WRITE)
        else:
            self._loop.remove_writer(connection)


class AsyncClient:
    """A cluster on the running loop, for callers who await each thing they ask."""

    def __init__(
        self, servers: str, *, client_id: str = "quire", request_timeout_ms: float = REQUEST_TIMEOUT_MS
    ) -> None:
        self._loop = asyncio.get_running_loop()
        shell = AsyncioLoop(self._loop)
        self.cluster = Cluster(
            parse_servers(servers),
            clock=shell,
            random=SystemRandom(),
            network=shell,
            client_id=client_id,
            request_timeout_ms=request_timeout_ms,
        )

    async def run(self, steps: Steps[T]) -> T:
        """Carries an operation out and returns its result, or raises what ended it; cancelled, it stops where it is."""
        try:
            outcome = await self.wait(perform(steps))
        finally:
            steps.close()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def wait(self, pending: Pending[T]) -> T:
        """What comes, be it an exception: `flush` of a producer, `arrival` of a consumer, the `done` of a delivery."""
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
    if not future.done():  # whoever waited may have been cancelled
        future.set_result(value)
