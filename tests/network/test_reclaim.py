"""Memory for large requests: half-sent ones do not hold it for long, and only clients that send too slowly are
closed.
"""

import pytest

from quire.network.handler import ConnectionInfo, EncodedResponse
from quire.network.limits import Limits
from quire.network.reclaim import FILL_MS, GRACE_MS
from quire.network.server import Server
from quire.pending import Pending
from simulator.clock import SimClock
from tests.network.memory import MemoryNetwork, MemoryTransport, frame

MB = 1024 * 1024
MODEST = frame(b"m" * MB)
HUGE = frame(b"h" * (15 * MB))


class World:
    """A server with 16 MB for large requests, 12 of them for huge ones. It parks requests that begin with p."""

    def __init__(self, memory_bytes: int = 16 * MB) -> None:
        self.clock = SimClock()
        self.network = MemoryNetwork(self.clock)
        self.server = Server(self.network, self.clock, self.handle, Limits(request_memory_bytes_max=memory_bytes))
        self.server.listen("PLAINTEXT", "127.0.0.1", 0)

    def handle(self, info: ConnectionInfo, request: memoryview) -> EncodedResponse | Pending[EncodedResponse]:
        return Pending() if request[0] == ord("p") else [frame(b"answered")]

    def client(self, data: bytes = b"") -> MemoryTransport:
        client = self.network.client()
        client.send(data)
        return client

    def holders(self, count: int = 3) -> list[MemoryTransport]:
        """Clients that have sent 3 MB of a huge request, and hold 4 MB each."""
        before = self.server.pool.in_use_bytes
        clients = [self.client(HUGE[: 3 * MB]) for _ in range(count)]
        assert self.server.pool.in_use_bytes == before + count * 4 * MB
        return clients

    def starve(self) -> MemoryTransport:
        """Two more clients with half of a huge request: one goes beyond the limit, and the other waits."""
        self.beyond = self.client(HUGE[: 3 * MB])
        waiting = self.client(HUGE[: 3 * MB])
        assert self.server.pool.is_short
        return waiting

    def send_more(self, clients: list[MemoryTransport], second: int) -> None:
        """Runs a second in which clients that have sent 3 MB continue slowly."""
        for client in clients:
            client.send(HUGE[3 * MB + second * 5_000 : 3 * MB + (second + 1) * 5_000])
        self.clock.run_for(1_000)


def test_modest_requests_are_served_while_half_sent_huge_ones_hold_all_they_can_get() -> None:
    world = World()
    world.holders()
    world.starve()
    for _ in range(20):
        client = world.client(MODEST)
        world.clock.run_for(0)
        assert bytes(client.taken) == frame(b"answered")


def test_no_connection_is_closed_while_none_waits() -> None:
    world = World()
    holders = world.holders()
    world.clock.run_for(120_000)
    assert not any(client.ended for client in holders)


def test_a_connection_that_stopped_sending_is_closed_when_another_waits(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    holders = world.holders()
    waiting = world.starve()
    world.clock.run_for(GRACE_MS + FILL_MS * 3 / 4 - 100)
    assert not any(client.ended for client in holders)
    sender = world.beyond
    sender.send(HUGE[3 * MB : 4 * MB])
    world.clock.run_for(2_000)
    assert 1 <= [client.ended for client in holders].count(True) == len(caplog.records) < 3
    assert "has stopped coming" in caplog.text
    assert not sender.ended
    waiting.send(HUGE[3 * MB :])
    sender.send(HUGE[4 * MB :])
    world.clock.run_for(20_000)
    assert bytes(waiting.taken) == bytes(sender.taken) == frame(b"answered")
    assert world.server.pool.in_use_bytes <= 12 * MB


def test_the_largest_that_has_stopped_is_closed_first() -> None:
    world = World()
    small, large = world.client(HUGE[: MB + MB // 2]), world.client(HUGE[: 6 * MB])
    other = world.client(HUGE[: MB + MB // 2])
    world.starve()
    world.clock.run_for(11_000)
    assert [client.ended for client in (small, large, other)] == [False, True, False]


def test_a_byte_now_and_then_is_not_progress() -> None:
    world = World()
    holders = world.holders()
    world.starve()
    for i in range(11):
        for client in (*holders, world.beyond):
            client.send(HUGE[3 * MB + i : 3 * MB + i + 1])
        world.clock.run_for(1_000)
    assert any(client.ended for client in (*holders, world.beyond))


def trickle(world: World, clients: list[MemoryTransport], bytes_per_second: int, seconds: float) -> None:
    """All clients continue to send their modest requests at this rate."""
    for client in clients:
        sent = client.sent_bytes
        client.send(MODEST[sent : sent + int(bytes_per_second * seconds)])
    world.clock.run_for(seconds * 1000)


def test_a_client_that_sends_at_the_required_rate_stays_and_a_slower_one_is_closed() -> None:
    world = World()
    slow = [world.client(MODEST[:20_000]) for _ in range(4)]
    senders = [world.client(MODEST[:20_000]) for _ in range(12)]
    waiting = [world.client(MODEST) for _ in range(10)]
    assert world.server.pool.is_short
    for _ in range(100):
        trickle(world, senders, 500_000, 0.05)
        trickle(world, slow, 20_000, 0.05)
    assert [bytes(client.taken) for client in (*senders, *waiting)] == [frame(b"answered")] * 22
    assert any(client.ended for client in slow)


def test_a_client_that_waits_for_memory_is_not_blamed_for_sending_nothing() -> None:
    world = World()
    waiting = world.client(HUGE[: 2 * MB - 1])
    senders = [*world.holders(2), world.client(HUGE[: 3 * MB])]
    waiting.send(HUGE[2 * MB - 1 : 2 * MB])
    assert waiting.paused
    for second in range(4):
        world.send_more(senders, second)
    assert waiting.paused
    world.clock.run_for(2_000)
    assert any(client.ended for client in senders)
    assert not waiting.paused
    assert not waiting.ended


def test_a_connection_that_just_got_its_memory_has_time_to_use_it() -> None:
    world = World()
    waiting = world.client(HUGE[: 2 * MB - 1])
    senders = [*world.holders(2), world.client(HUGE[: 3 * MB])]
    waiting.send(HUGE[2 * MB - 1 : 2 * MB])
    for _ in range(2):
        world.client(HUGE[: 3 * MB])
    for second in range(4):
        world.send_more(senders, second)
    senders.pop().hang_up()
    world.clock.run_for(0)
    assert not waiting.paused
    assert world.server.pool.is_short
    for second in range(4, 7):
        world.send_more(senders, second)
    assert not waiting.ended


def test_unused_memory_is_taken_back_without_closing_its_owner() -> None:
    world = World()
    idle = world.client(MODEST)
    world.clock.run_for(0)
    assert idle.receiver is not None
    idle.receiver.buffer()
    assert world.server.pool.in_use_bytes > MB
    world.clock.run_for(1_000)
    holders = [world.client(MODEST[:20_000]) for _ in range(15)]
    waiting = world.client(MODEST)
    world.clock.run_for(0)
    assert bytes(waiting.taken) == frame(b"answered")
    assert not any(client.ended for client in (idle, *holders))


SLOW = frame(b"s" * 200_000)


class Tricklers:
    """330 clients that send a little of a large request twice a second, and reconnect when they are closed."""

    def __init__(self, world: World, count: int = 330, first: bytes = SLOW[:20_000]) -> None:
        self._world = world
        self._first = first
        self._clients = [world.client(first) for _ in range(count)]

    def trickle(self) -> None:
        for i, client in enumerate(self._clients):
            if client.ended:
                self._clients[i] = self._world.client(self._first)
            else:
                client.send(SLOW[client.sent_bytes : client.sent_bytes + 800])


@pytest.mark.parametrize("first", [SLOW[:20_000], SLOW[:100_000]])
def test_a_client_that_sends_its_requests_is_served_soon_beside_hundreds_that_hold_all_memory(first: bytes) -> None:
    world = World(48 * MB)
    tricklers = Tricklers(world, first=first)
    assert world.server.pool.is_short
    honest = world.client(MODEST[:20_000])
    honest.send(MODEST[20_000:])
    waits_ms: list[float] = []
    sent_ms = world.clock.monotonic_ms()
    answered = 0
    for step in range(600):
        world.clock.run_for(100)
        if step % 5 == 0:
            tricklers.trickle()
        if len(honest.taken) > answered:
            waits_ms.append(world.clock.monotonic_ms() - sent_ms)
            answered = len(honest.taken)
            sent_ms = world.clock.monotonic_ms()
            honest.send(MODEST)
    assert len(waits_ms) > 100
    assert waits_ms[0] <= 3_000, "the first one waits in line with clients that have never sent a large request"
    assert max(waits_ms[1:]) <= 1_000
    assert sum(waits_ms) / len(waits_ms) < 500


def test_a_parked_request_does_not_protect_a_half_sent_one_behind_it() -> None:
    world = World()
    parked = world.client(MODEST)
    world.clock.run_for(0)
    parked.send(frame(b"parked..") + frame(b"x" * (MB // 2))[:200_000])
    assert world.server.pool.in_use_bytes > MB
    holders = world.holders(2)
    world.starve()
    for second in range(12):
        world.send_more([*holders, world.beyond], second)
    assert parked.ended
    assert not any(client.ended for client in holders)
