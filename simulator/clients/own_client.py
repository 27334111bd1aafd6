"""Quire's own client in the simulation: the same code that runs in programs, on the simulated clock and network.

It connects, backs off and asks again by itself, so all that is done here is to keep its connections away from a node
that has lost its power and was not looked at yet, to remember in which era the last one was made, and to let tasks
wait for what it does.
"""

from collections.abc import Callable
from typing import TypeVar

from quire.client.batch import Delivery
from quire.client.cluster import Cluster
from quire.client.servers import Address
from quire.pending import Pending
from quire.seams import Listener, Receiver, Transport
from quire.steps import Steps, perform
from simulator.clients.client import NODE_HOST, NODE_PORT, Scene, SimClient
from simulator.tasks import Promise

T = TypeVar("T")

REQUEST_TIMEOUT_MS = 4000.0
POLL_MS = 20.0


class PowerLost(Exception):  # noqa: N818
    """What the client was about to do makes no sense any more, as the node may have forgotten half of it."""


class Nobody:
    """Listens to a connection without taking anything in: to one that is given up at once."""

    def buffer(self) -> memoryview:
        return memoryview(bytearray(1))

    def received(self, size: int) -> None:
        pass

    def drained(self) -> None:
        pass

    def closed(self, reason: str) -> None:
        pass


class GatedNetwork:
    """The host of a client, which reaches the node only while the gate is open."""

    def __init__(self, scene: Scene, name: str) -> None:
        self.era = 0
        """Of the last connection: what it was told says nothing about later ones."""
        self.connections = 0
        self._scene = scene
        self._host = scene.network.host(name)

    def listen(self, host: str, port: int, accept: Callable[[Transport], Receiver | None]) -> Listener:
        raise NotImplementedError("a client does not listen")

    def connect(
        self,
        host: str,
        port: int,
        connected: Callable[[Transport], Receiver],
        failed: Callable[[Exception], None],
    ) -> None:
        clock, gate = self._scene.clock, self._scene.gate

        def let_in(transport: Transport) -> Receiver:
            if not gate.is_open:
                clock.call_soon(transport.abort)
                clock.call_soon(lambda: failed(OSError("the gate was closed")))
                return Nobody()
            self._scene.ledger.counts.connections += 1
            self.connections += 1
            self.era = self._scene.life.era
            return connected(transport)

        if gate.is_open:
            self._host.connect(host, port, let_in, failed)
        else:
            clock.call_soon(lambda: failed(OSError("the gate is closed")))


class OwnClient(SimClient):
    def __init__(self, scene: Scene, name: str) -> None:
        super().__init__(scene, name)
        self.network = GatedNetwork(scene, name)
        self.batches: dict[Delivery, list[bytes]] = {}
        """What is in each batch that is on its way."""
        self.cluster = self.new_cluster()

    def new_cluster(self) -> Cluster:
        return Cluster(
            [Address(NODE_HOST, NODE_PORT)],
            clock=self.scene.clock,
            random=self.random.stream("own"),
            network=self.network,
            client_id=self.name,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
        )

    async def perform(self, steps: Steps[T]) -> T:
        """An operation's result; what ended it is raised."""
        outcome = await self.wait(perform(steps))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def wait(self, pending: Pending[T]) -> T:
        promise: Promise[T] = Promise()
        pending.when_done(promise.keep)
        return await promise

    def close(self) -> None:
        self.cluster.close()
        super().close()
