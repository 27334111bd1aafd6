"""Memory for large requests: half-sent ones hold nobody up for long, and only those that have stopped are closed."""

import pytest

from quire.network.connection import Answer, ConnectionInfo
from quire.network.limits import Limits
from quire.network.server import Server
from quire.pending import Pending
from simulator.clock import SimClock
from tests.network.memory import MemoryNetwork, MemoryTransport, frame

MB = 1024 * 1024
MODEST = frame(b"m" * MB)
HUGE = frame(b"h" * (15 * MB))


class World:
    """A server with 16 MB for large requests, 12 of them for huge ones. It parks what begins with p."""

    def __init__(self) -> None:
        self.clock = SimClock()
        self.network = MemoryNetwork(self.clock)
        self.server = Server(self.network, self.clock, self.handle, Limits(request_memory_bytes_max=16 * MB))
        self.server.listen("PLAINTEXT", "127.0.0.1", 0)

    def handle(self, info: ConnectionInfo, request: memoryview) -> Answer | Pending[Answer]:
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
        """A second in which clients that have sent 3 MB go on slowly."""
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


def test_nobody_is_closed_while_nobody_waits() -> None:
    world = World()
    holders = world.holders()
    world.clock.run_for(120_000)
    assert not any(client.ended for client in holders)


def test_who_has_stopped_sending_is_closed_when_another_waits(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    holders = world.holders()
    waiting = world.starve()
    world.clock.run_for(9_000)
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
    small, large = world.client(HUGE[: MB + MB // 2]), world.client(HUGE[: 7 * MB])
    other = world.client(HUGE[: MB + MB // 2])
    world.starve()
    world.clock.run_for(11_000)
    assert [client.ended for client in (small, large, other)] == [False, True, False]


def test_a_byte_now_and_then_is_not_progress() -> None:
    world = World()
    holders = world.holders()
    world.starve()
    for i in range(11):
        for client in holders:
            client.send(HUGE[3 * MB + i : 3 * MB + i + 1])
        world.clock.run_for(1_000)
    assert any(client.ended for client in holders)


def test_whoever_makes_progress_is_left_alone() -> None:
    world = World()
    holders = world.holders()
    world.starve()
    for second in range(60):
        world.send_more([*holders, world.beyond], second)
    assert not any(client.ended for client in (*holders, world.beyond))


def test_who_waits_for_memory_is_not_blamed_for_sending_nothing() -> None:
    world = World()
    waiting = world.client(HUGE[: 2 * MB - 1])
    senders = [*world.holders(2), world.client(HUGE[: 3 * MB])]
    waiting.send(HUGE[2 * MB - 1 : 2 * MB])
    assert waiting.paused
    for second in range(25):
        world.send_more(senders, second)
    assert waiting.paused
    assert not waiting.ended


def test_who_has_just_got_the_memory_that_it_waited_for_has_time_to_use_it() -> None:
    world = World()
    waiting = world.client(HUGE[: 2 * MB - 1])
    senders = [*world.holders(2), world.client(HUGE[: 3 * MB])]
    waiting.send(HUGE[2 * MB - 1 : 2 * MB])
    for _ in range(2):
        world.client(HUGE[: 3 * MB])
    for second in range(19):
        world.send_more(senders, second)
    senders.pop().hang_up()
    world.clock.run_for(0)
    assert not waiting.paused
    assert world.server.pool.is_short
    for second in range(19, 22):
        world.send_more(senders, second)
    assert not waiting.ended


def test_a_parked_request_is_no_shelter_for_a_half_sent_one_behind_it() -> None:
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
