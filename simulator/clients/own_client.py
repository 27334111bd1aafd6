"""Quire's own client in the simulation: the same code that runs in programs, on the simulated clock and network.

It connects, backs off and retries by itself. This module only keeps its connections away from a node that lost power
and was not audited yet, remembers the eras of the last connections, and lets tasks wait for its results.
"""

from collections.abc import Callable
from typing import TypeVar

from quire.address import Address
from quire.client.batch import Delivery
from quire.client.cluster import Cluster
from quire.pending import Pending
from quire.seams import Receiver, Transport
from quire.steps import Steps, perform
from simulator.clients.client import Scene, SimClient
from simulator.hosts import NODE_PORT
from simulator.ledger import PartitionBook
from simulator.tasks import Promise

T = TypeVar("T")

REQUEST_TIMEOUT_MS = 4000.0
POLL_MS = 20.0


class PowerLost(Exception):  # noqa: N818
    """The client's operation is void, because the node may have lost a part of it."""


class IgnoringReceiver:
    """The receiver of a connection that is closed at once."""

    def buffer(self) -> memoryview:
        return memoryview(bytearray(1))

    def received(self, size: int) -> None:
        pass

    def drained(self) -> None:
        pass

    def closed(self, reason: str) -> None:
        pass


class GatedNetwork:
    """The host of a client, which reaches each node only while its gate is open."""

    def __init__(self, scene: Scene, name: str) -> None:
        self.eras: dict[str, int] = {}
        """The era of the last connection to each node: its answers say nothing about later eras."""
        self.connections = 0
        self._scene = scene
        self._host = scene.network.host(name)

    def connect(
        self,
        host: str,
        port: int,
        connected: Callable[[Transport], Receiver],
        failed: Callable[[Exception], None],
    ) -> None:
        clock, gate = self._scene.clock, self._scene.gates[host]

        def let_in(transport: Transport) -> Receiver:
            if not gate.is_open:
                clock.call_soon(transport.abort)
                clock.call_soon(lambda: failed(OSError("the gate was closed")))
                return IgnoringReceiver()
            self._scene.ledger.counts.connections += 1
            self.connections += 1
            self.eras[host] = self._scene.era
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
        """The values in each batch that is in flight."""
        self.cluster = self.new_cluster()

    def new_cluster(self) -> Cluster:
        return Cluster(
            [Address(node, NODE_PORT) for node in self.scene.nodes],
            clock=self.scene.clock,
            random=self.random.stream("own"),
            network=self.network,
            client_id=self.name,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
        )

    async def perform(self, steps: Steps[T]) -> T:
        """Returns an operation's result, or raises its error."""
        outcome = await self.wait(perform(steps))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def wait(self, pending: Pending[T]) -> T:
        promise: Promise[T] = Promise()
        pending.when_done(promise.keep)
        return await promise

    def era_for(self, book: PartitionBook, eras: dict[str, int] | None = None) -> int:
        """The era of what it has got of this partition, with its latest connections or these."""
        return (self.network.eras if eras is None else eras).get(self.scene.leader_of(book), 0)

    def close(self) -> None:
        self.cluster.close()
        super().close()
