"""The server on the simulated network: bytes are cut anywhere, delayed and lost, and every answer still arrives in
order."""

import pytest

from quire.network.handler import ConnectionInfo, EncodedResponse
from quire.network.limits import Limits
from quire.network.server import Server
from quire.pending import Pending
from quire.seams import Receiver, Transport
from simulator.clock import SimClock
from simulator.network import Conditions, SimNetwork
from simulator.random import SimRandom
from tests.network.memory import frame


class Client:
    """Sends all its requests at once and stores the responses."""

    def __init__(self, transport: Transport, requests: bytes) -> None:
        self.requests = requests
        self.answers = bytearray()
        self.closed_reasons: list[str] = []
        self._room = memoryview(bytearray(1000))
        transport.write([requests])

    def buffer(self) -> memoryview:
        return self._room

    def received(self, size: int) -> None:
        self.answers += self._room[:size]

    def drained(self) -> None:
        pass

    def closed(self, reason: str) -> None:
        self.closed_reasons.append(reason)


class World:
    def __init__(self, seed: int, conditions: Conditions) -> None:
        self.clock = SimClock()
        self.random = SimRandom(seed)
        self.network = SimNetwork(self.clock, self.random, conditions)
        limits = Limits(queued_bytes_pause=20_000, request_memory_bytes_max=100_000, idle_ms_max=100_000)
        self.server = Server(self.network.host("server"), self.clock, self.handle, limits)
        self.port = self.server.listen("PLAINTEXT", "", 0)
        self.clients: list[Client] = []

    def handle(self, info: ConnectionInfo, request: memoryview) -> EncodedResponse | Pending[EncodedResponse]:
        answer: EncodedResponse = [frame(bytes(request))]
        if self.random.below(3):
            return answer
        pending: Pending[EncodedResponse] = Pending()
        self.clock.call_later(self.random.below(20), lambda: pending.complete(answer))
        return pending

    def connect(self, number: int) -> None:
        sizes = [8 + self.random.below(60) if self.random.below(10) else 40_000 for _ in range(60)]
        requests = b"".join(frame(bytes([number]) * size) for size in sizes)

        def connected(transport: Transport) -> Receiver:
            self.clients.append(Client(transport, requests))
            return self.clients[-1]

        self.network.host(f"client{number}").connect("server", self.port, connected, lambda error: None)


@pytest.mark.parametrize("seed", range(12))
def test_answers_come_whole_and_in_order_over_a_healthy_network(seed: int) -> None:
    world = World(seed, Conditions())
    for number in range(5):
        world.connect(number)
    world.clock.run_until(
        lambda: len(world.clients) == 5 and all(len(client.answers) == len(client.requests) for client in world.clients)
    )
    assert all(client.answers == client.requests for client in world.clients)
    assert world.server.pool.in_use_bytes == 0


@pytest.mark.parametrize("seed", range(12))
def test_a_bad_network_costs_answers_but_never_their_order_nor_memory(seed: int) -> None:
    world = World(seed, Conditions(break_chance=0.005, slow_chance=0.05))
    for number in range(8):
        world.connect(number)
    world.clock.run_for(300_000)
    assert all(client.requests.startswith(client.answers) for client in world.clients)
    assert world.server.counters.connections == 0
    assert world.server.counters.queued_bytes == 0
    assert world.server.pool.in_use_bytes == 0
    stopped: list[bool] = []
    world.server.stop(1000, lambda: stopped.append(True))
    assert stopped == [True]
