"""Simulated connections have TCP's guarantees: order, back-pressure, and one end; they break on request."""

import pytest

from quire.seams import FileSlice, Network, Transport
from simulator.clock import SimClock
from simulator.disk import SimDisk
from simulator.network import Conditions, SimNetwork
from simulator.random import SimRandom
from simulator.trace import Trace


class Peer:
    """Stores everything that it receives, and echoes it if requested."""

    def __init__(self, transport: Transport, *, echo: bool = False, room: int = 1000) -> None:
        self.transport = transport
        self.got = b""
        self.pieces = 0
        self.drains = 0
        self.ends: list[str] = []
        self._echo = echo
        self._room = bytearray(room)

    def buffer(self) -> memoryview:
        return memoryview(self._room)

    def received(self, size: int) -> None:
        assert self.ends == []
        self.got += self._room[:size]
        self.pieces += 1
        if self._echo:
            self.transport.write([memoryview(self._room)[:size]])

    def drained(self) -> None:
        self.drains += 1

    def closed(self, reason: str) -> None:
        self.ends.append(reason)


class Scene:
    """A server that listens on node:9092 and clients that connect to it."""

    def __init__(self, seed: int = 1, conditions: Conditions | None = None, *, echo: bool = False) -> None:
        self.clock = SimClock()
        self.trace = Trace()
        self.network = SimNetwork(self.clock, SimRandom(seed), conditions, trace=self.trace)
        self.servers: list[Peer] = []
        self.failures: list[Exception] = []
        self.echo = echo
        self.network.host("node").listen("0.0.0.0", 9092, self.accept)

    def accept(self, transport: Transport) -> Peer:
        self.servers.append(Peer(transport, echo=self.echo))
        return self.servers[-1]

    def start_connecting(self, host: str = "client", *, to: str = "node", port: int = 9092) -> list[Peer]:
        clients: list[Peer] = []

        def connected(transport: Transport) -> Peer:
            clients.append(Peer(transport))
            return clients[-1]

        network: Network = self.network.host(host)
        network.connect(to, port, connected, self.failures.append)
        return clients

    def connect(self, host: str = "client") -> tuple[Peer, Peer]:
        clients = self.start_connecting(host)
        self.clock.run_until(lambda: bool(clients))
        return clients[0], self.servers[-1]


@pytest.mark.parametrize("seed", range(20))
def test_bytes_arrive_whole_and_in_order_cut_in_other_places(seed: int) -> None:
    scene = Scene(seed, Conditions(slow_chance=0.1))
    client, server = scene.connect()
    data = SimRandom(seed).random_bytes(300_000)
    position = 0
    while position < len(data):
        client.transport.write([data[position : position + 7000], bytearray(data[position + 7000 : position + 7001])])
        position += 7001
    scene.clock.run_until_idle()
    assert server.got == data
    assert server.pieces > 300
    assert client.transport.queued_bytes == 0


def test_a_buffer_may_be_reused_as_soon_as_write_returns() -> None:
    scene = Scene()
    client, server = scene.connect()
    buffer = bytearray(b"x" * 200_000)
    client.transport.write([memoryview(buffer)])
    buffer[:] = b"y" * len(buffer)
    scene.clock.run_until_idle()
    assert server.got == b"x" * 200_000


def test_both_sides_know_where_the_other_is() -> None:
    client, server = Scene().connect()
    assert client.transport.peer == "node:9092"
    assert server.transport.peer.startswith("client:4")


def test_a_host_reaches_itself_as_localhost() -> None:
    scene = Scene()
    clients = scene.start_connecting("node", to="127.0.0.1")
    scene.clock.run_until_idle()
    assert len(clients) == len(scene.servers) == 1


def test_a_paused_receiver_fills_the_window_and_then_the_senders_queue() -> None:
    scene = Scene(conditions=Conditions(window_bytes=10_000))
    client, server = scene.connect()
    server.transport.pause()
    client.transport.write([b"x" * 50_000])
    scene.clock.run_for(1000)
    assert (len(server.got), client.transport.queued_bytes, client.drains) == (0, 40_000, 0)
    server.transport.resume()
    scene.clock.run_until_idle()
    assert (len(server.got), client.transport.queued_bytes, client.drains) == (50_000, 0, 1)


def test_pausing_while_receiving_stops_at_once() -> None:
    scene = Scene()
    client, server = scene.connect()
    server.received = lambda size: server.transport.pause()  # type: ignore[method-assign]
    asked = 0

    def buffer() -> memoryview:
        nonlocal asked
        asked += 1
        return memoryview(bytearray(10))

    server.buffer = buffer  # type: ignore[method-assign]
    client.transport.write([b"x" * 1000])
    scene.clock.run_until_idle()
    assert asked == 1


def test_file_slices_are_read_when_they_are_sent_even_if_their_file_was_closed_since() -> None:
    scene = Scene(conditions=Conditions(window_bytes=1000))
    client, server = scene.connect()
    disk = SimDisk()
    file = disk.open("log", create=True)
    file.pwritev([b"0123456789" * 1000], 0)
    client.transport.write([b"head", FileSlice(file, 10, 9000), b"tail"])
    file.close()
    disk.remove("log")
    scene.clock.run_until_idle()
    assert server.got == b"head" + b"0123456789" * 900 + b"tail"
    assert not any(disk.held.values())


def test_a_slice_that_cannot_be_read_ends_its_connection_alone() -> None:
    scene = Scene(conditions=Conditions(window_bytes=1000))
    client, server = scene.connect()
    disk = SimDisk()
    file = disk.open("log", create=True)
    file.pwritev([b"x" * 5000], 0)
    client.transport.write([FileSlice(file, 0, 2000), FileSlice(file, 2000, 3000)])
    disk.fail_when(lambda operation: operation.kind == "read")
    scene.clock.run_until_idle()
    assert client.ends == ["cannot read log: Input/output error"]
    assert server.ends == ["connection reset by peer"]
    assert not any(disk.held.values())


def test_close_sends_what_is_queued_and_ends_both_sides_once() -> None:
    scene = Scene(conditions=Conditions(window_bytes=1000))
    client, server = scene.connect()
    client.transport.write([b"x" * 20_000])
    client.transport.close()
    client.transport.close()
    client.transport.write([b"too late"])
    assert client.ends == []
    scene.clock.run_until_idle()
    assert server.got == b"x" * 20_000
    assert (client.ends, server.ends) == (["closed"], ["closed by peer"])


def test_a_paused_side_sees_the_end_after_it_has_read_everything() -> None:
    scene = Scene()
    client, server = scene.connect()
    server.transport.pause()
    client.transport.write([b"last words"])
    client.transport.close()
    scene.clock.run_until_idle()
    assert server.ends == []
    server.transport.resume()
    scene.clock.run_until_idle()
    assert (server.got, server.ends) == (b"last words", ["closed by peer"])


def test_a_paused_side_learns_at_once_that_the_other_has_closed() -> None:
    scene = Scene()
    client, server = scene.connect()
    server.transport.pause()
    client.transport.close()
    scene.clock.run_until_idle()
    assert server.ends == ["closed by peer"]


@pytest.mark.parametrize("pauses_first", [True, False])
def test_a_paused_side_learns_that_the_other_has_closed_although_bytes_are_unread(pauses_first: bool) -> None:
    scene = Scene()
    client, server = scene.connect()
    told: list[str] = []
    server.transport.pause((lambda: told.append("left")) if pauses_first else None)
    client.transport.write([b"last words"])
    client.transport.close()
    scene.clock.run_until_idle()
    if not pauses_first:
        server.transport.pause(lambda: told.append("left"))
        assert told == []
        scene.clock.run_until_idle()
    assert (told, server.got, server.ends) == (["left"], b"", [])
    server.transport.resume()
    scene.clock.run_until_idle()
    assert (told, server.got, server.ends) == (["left"], b"last words", ["closed by peer"])


def test_writing_to_a_closed_side_ends_in_a_reset() -> None:
    scene = Scene()
    client, server = scene.connect()
    server.transport.pause()
    client.transport.write([b"unread"])
    client.transport.close()
    scene.clock.run_until_idle()
    server.transport.write([b"anybody there?"])
    scene.clock.run_until_idle()
    assert server.ends == ["connection reset by peer"]


def test_both_sides_closing_at_once_both_end() -> None:
    scene = Scene(conditions=Conditions(window_bytes=1000))
    client, server = scene.connect()
    for peer in (client, server):
        peer.transport.write([b"x" * 5000])
        peer.transport.close()
    scene.clock.run_until_idle()
    assert (len(client.ends), len(server.ends)) == (1, 1)


def test_abort_drops_what_is_queued() -> None:
    scene = Scene(conditions=Conditions(window_bytes=1000))
    client, server = scene.connect()
    client.transport.write([b"x" * 20_000])
    client.transport.abort()
    assert client.transport.queued_bytes == 0
    scene.clock.run_until_idle()
    assert len(server.got) <= 1000
    assert (client.ends, server.ends) == (["aborted"], ["connection reset by peer"])


def test_a_missing_or_closed_listener_refuses_the_connection() -> None:
    scene = Scene()
    scene.start_connecting(port=1)
    scene.start_connecting(to="nowhere")
    listener = scene.network.host("node").listen("", 0, scene.accept)
    listener.close()
    scene.start_connecting(port=listener.port)
    scene.clock.run_until_idle()
    assert [type(error) for error in scene.failures] == [ConnectionRefusedError] * 3


def test_a_port_is_listened_on_once() -> None:
    scene = Scene()
    with pytest.raises(OSError, match="in use"):
        scene.network.host("node").listen("127.0.0.1", 9092, scene.accept)


def test_a_server_that_does_not_accept_ends_the_connection() -> None:
    scene = Scene()
    listener = scene.network.host("node").listen("", 0, lambda _: None)
    clients = scene.start_connecting(port=listener.port)
    scene.clock.run_until_idle()
    assert clients[0].ends == ["connection reset by peer"]


def test_a_cut_holds_bytes_back_until_it_heals() -> None:
    scene = Scene(echo=True)
    client, server = scene.connect()
    scene.network.cut("client", "node")
    client.transport.write([b"hello"])
    scene.clock.run_for(60_000)
    assert (server.got, client.ends) == (b"", [])
    scene.network.heal()
    scene.clock.run_until_idle()
    assert (server.got, client.got) == (b"hello", b"hello")


def test_a_one_way_cut_lets_requests_through_and_answers_wait() -> None:
    scene = Scene(echo=True)
    client, server = scene.connect()
    scene.network.cut("node", "client", one_way=True)
    client.transport.write([b"hello"])
    scene.clock.run_for(1000)
    assert (server.got, client.got) == (b"hello", b"")


def test_connecting_through_a_cut_times_out() -> None:
    scene = Scene()
    scene.network.cut("client", "node")
    scene.start_connecting()
    scene.clock.run_until_idle()
    assert [type(error) for error in scene.failures] == [TimeoutError]
    assert scene.clock.monotonic_ms() == 5000


def test_broken_connections_tell_both_sides() -> None:
    scene = Scene()
    client, server = scene.connect()
    other, _ = scene.connect("other")
    assert scene.network.break_connections("node", "client") == 1
    scene.clock.run_until_idle()
    assert client.ends == server.ends == ["connection reset"]
    assert other.ends == []
    assert scene.network.connections("node") == 1


def test_a_host_that_crashes_in_the_moment_a_connection_breaks_hears_nothing_of_that_either() -> None:
    scene = Scene()
    client, server = scene.connect()
    scene.network.break_connections("client")
    scene.network.crash("node")
    scene.clock.run_until_idle()
    assert server.ends == []
    assert client.ends == ["connection reset"]


def test_a_crashed_host_hears_nothing_and_its_peers_are_reset() -> None:
    scene = Scene()
    client, server = scene.connect()
    scene.start_connecting()
    client.transport.write([b"x" * 1000])
    scene.network.crash("node")
    scene.clock.run_until_idle()
    assert (server.ends, server.got) == ([], b"")
    assert client.ends == ["connection reset"]
    assert len(scene.failures) == 1, "the connection under way was refused"
    scene.network.host("node").listen("", 9092, scene.accept)
    assert scene.connect()[0].ends == []


def digest_of_a_run(seed: int) -> tuple[str, int]:
    scene = Scene(seed, Conditions(slow_chance=0.1, break_chance=0.02), echo=True)
    random = SimRandom(seed)
    for _ in range(10):
        client, _ = scene.connect()
        for _ in range(20):
            client.transport.write([random.random_bytes(random.below(5000))])
            scene.clock.run_for(random.between(0, 20))
        client.transport.close()
    scene.clock.run_until_idle()
    return scene.trace.digest, scene.trace.events


def test_a_seed_run_twice_gives_the_same_trace() -> None:
    assert digest_of_a_run(5) == digest_of_a_run(5)
    assert digest_of_a_run(5) != digest_of_a_run(6)
