"""The server: named listeners, limits on connections, and a stop that finishes requests in progress."""

import pytest

from quire.network.handler import ConnectionInfo, EncodedResponse
from quire.network.limits import Limits
from quire.network.server import Server
from quire.pending import Pending
from simulator.clock import SimClock
from tests.network.memory import MemoryNetwork, frame, frames_in


class World:
    """A server that parks requests until `complete` is called, and answers those that begin with echo at once."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.clock = SimClock()
        self.network = MemoryNetwork(self.clock)
        self.server = Server(self.network, self.clock, self.handle, limits, disconnected=self.disconnected)
        self.ports = [self.server.listen("INSIDE", "127.0.0.1", 9092), self.server.listen("OUTSIDE", "::1", 0)]
        self.parked: list[tuple[bytes, Pending[EncodedResponse]]] = []
        self.listeners: list[str] = []
        self.gone: list[int] = []
        self.stops = 0

    def handle(self, info: ConnectionInfo, request: memoryview) -> EncodedResponse | Pending[EncodedResponse]:
        self.listeners.append(info.listener)
        if bytes(request[:4]) == b"echo":
            return [frame(bytes(request))]
        pending: Pending[EncodedResponse] = Pending()
        self.parked.append((bytes(request), pending))
        return pending

    def disconnected(self, info: ConnectionInfo) -> None:
        self.gone.append(info.connection_id)

    def complete_all(self) -> None:
        for text, pending in self.parked:
            pending.complete([frame(text)])

    def stop(self, deadline_ms: float = 1000) -> None:
        self.server.stop(deadline_ms, self.stopped)
        self.clock.run_for(0)

    def stopped(self) -> None:
        self.stops += 1


def test_each_listener_has_its_port_and_requests_say_which_they_came_through() -> None:
    world = World()
    assert world.ports == [9092, 10001]
    world.network.client(listener=1).send(frame(b"echo...1"))
    world.network.client(listener=0).send(frame(b"echo...2"))
    assert world.listeners == ["OUTSIDE", "INSIDE"]


def test_connections_beyond_max_connections_are_refused_until_one_leaves() -> None:
    world = World(Limits(connections_max=2))
    first, second, third = (world.network.client(f"10.0.0.{i}") for i in range(3))
    assert [client.ended for client in (first, second, third)] == [False, False, True]
    first.hang_up()
    world.clock.run_for(0)
    assert not world.network.client().ended
    assert world.server.counters.connections == 2
    assert world.server.counters.refused_total == 1
    assert world.gone == [0]


def test_connections_of_one_address_are_limited_without_harm_to_others() -> None:
    world = World(Limits(connections_per_ip_max=2, connections_per_ip_overrides={"10.0.0.9": 3}))
    same = [world.network.client("10.0.0.1") for _ in range(3)]
    assert [client.ended for client in same] == [False, False, True]
    assert not world.network.client("10.0.0.2").ended
    known = [world.network.client("10.0.0.9") for _ in range(4)]
    assert [client.ended for client in known] == [False, False, False, True]
    same[0].hang_up()
    world.clock.run_for(0)
    assert not world.network.client("10.0.0.1").ended


def test_changed_limits_hold_for_the_next_connection() -> None:
    world = World(Limits(connections_max=1))
    world.network.client()
    assert world.network.client().ended
    world.server.limits.connections_max = 2
    assert not world.network.client().ended


def test_a_flood_of_refusals_is_a_line_a_second(caplog: pytest.LogCaptureFixture) -> None:
    world = World(Limits(connections_max=0))
    for _ in range(1000):
        world.network.client()
    world.clock.run_for(1000)
    world.network.client()
    assert [record.getMessage()[:20] for record in caplog.records] == ["refused 1 connection", "refused 1000 connect"]


def test_stop_without_connections_is_done_at_once() -> None:
    world = World()
    world.stop()
    assert world.stops == 1
    assert [listener.open for listener in world.network.listeners] == [False, False]


def test_stop_answers_what_is_in_progress_and_nothing_else() -> None:
    world = World()
    idle, busy = world.network.client(), world.network.client()
    busy.send(frame(b"park...1") + frame(b"echo...2"))
    world.stop()
    assert idle.ended
    assert not busy.ended
    assert world.stops == 0
    world.complete_all()
    world.clock.run_for(0)
    assert frames_in(busy.taken) == [b"park...1"]
    assert busy.closed_reasons == ["closed by this side"]
    assert world.stops == 1
    world.clock.run_for(5000)
    assert world.stops == 1


def test_stop_lets_a_slow_reader_take_its_last_answer() -> None:
    world = World()
    client = world.network.client(takes=0)
    client.send(frame(b"echo...1"))
    world.stop()
    assert not client.ended
    client.take()
    world.clock.run_for(0)
    assert frames_in(client.taken) == [b"echo...1"]
    assert world.stops == 1


def test_connections_unfinished_at_the_deadline_are_cut_off() -> None:
    world = World()
    parked, slow = world.network.client(), world.network.client(takes=0)
    parked.send(frame(b"park...1"))
    slow.send(frame(b"echo...2"))
    world.stop(deadline_ms=1000)
    world.clock.run_for(999)
    assert world.stops == 0
    world.clock.run_for(2)
    assert (parked.closed_reasons, slow.closed_reasons) == (["aborted"], ["aborted"])
    assert world.stops == 1
    assert world.server.counters.connections == 0
    world.complete_all()
    assert parked.taken == b""


def test_no_connection_is_accepted_while_the_server_stops() -> None:
    world = World()
    busy = world.network.client()
    busy.send(frame(b"park...1"))
    world.stop()
    assert world.network.client().ended


def test_stop_under_load_answers_every_request_it_took_and_ends_every_connection() -> None:
    world = World()
    clients = [world.network.client(takes=None if i % 3 else 5) for i in range(60)]
    for i, client in enumerate(clients):
        client.send(frame(b"echo.%3d" % i) + frame(b"park.%3d" % i) + frame(b"echo.%3d" % i))
    world.stop()
    world.complete_all()
    for client in clients:
        client.take()
    world.clock.run_for(0)
    assert world.stops == 1
    assert all(client.ended for client in clients)
    assert [frames_in(client.taken) for client in clients] == [[b"echo.%3d" % i, b"park.%3d" % i] for i in range(60)]
    assert world.server.counters.queued_bytes == 0
    assert sorted(world.gone) == list(range(60))
