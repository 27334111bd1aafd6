"""Listening and connecting: every address of a name, running out of descriptors, and connects that fail in time."""

import errno
import os
import resource
import socket
import time
from collections.abc import Iterator

import pytest

from quire.seams import Network, Receiver, Transport
from tests.real.real_world import RealWorld, Recorder


@pytest.fixture(params=["uvloop", "asyncio"])
def world(request: pytest.FixtureRequest) -> Iterator[RealWorld]:
    made = RealWorld(request.param)
    yield made
    made.close()


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


def test_sockets_have_the_shape_of_the_seam(world: RealWorld) -> None:
    network: Network = world.network
    assert network.listen("127.0.0.1", 0, world.accept).port > 0


def test_connections_have_the_buffers_that_were_asked_for_and_otherwise_the_systems() -> None:
    made = RealWorld("uvloop", send_buffer_bytes=20_000)
    try:
        made.listen()
        _, server = made.client()
        accepted = server.transport._socket  # type: ignore[attr-defined]
        with socket.create_server(("127.0.0.1", 0)) as untouched:
            systems = untouched.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 2 * 20_000  # Linux counts its own share too
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= systems
    finally:
        made.close()


def test_a_refused_connection_is_closed_and_the_next_one_may_come(world: RealWorld) -> None:
    listener = world.listen()
    world.refusing = True
    refused = world.dial(listener.port)
    assert world.read(refused, 1) == b""
    assert world.network.connections == 0
    world.refusing = False
    client, server = world.client()
    client.send(b"hello")
    world.until(lambda: server.data == b"hello")


def test_a_closed_listener_refuses_and_leaves_its_connections_alone(world: RealWorld) -> None:
    listener = world.listen()
    client, server = world.client()
    listener.close()
    listener.close()
    with pytest.raises(ConnectionRefusedError):
        world.dial(listener.port)
    client.send(b"still here")
    world.until(lambda: server.data == b"still here")


def test_a_port_in_use_is_an_error_that_names_it(world: RealWorld) -> None:
    port = world.listen().port
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use") as caught:
        world.network.listen("127.0.0.1", port, world.accept)
    assert caught.value.errno == errno.EADDRINUSE


@needs_ipv6
def test_an_ipv6_client_has_a_bracketed_name(world: RealWorld) -> None:
    listener = world.listen("::1")
    client = world.dial(listener.port, "::1")
    world.until(lambda: len(world.accepted) == 1)
    assert world.accepted[0].transport.peer == f"[::1]:{client.getsockname()[1]}"


@needs_ipv6
@pytest.mark.parametrize("host", ["", "::"])
def test_all_interfaces_means_both_kinds_of_addresses_each_under_its_own_name(world: RealWorld, host: str) -> None:
    listener = world.listen(host)
    world.dial(listener.port, "127.0.0.1")
    world.until(lambda: len(world.accepted) == 1)
    world.dial(listener.port, "::1")
    world.until(lambda: len(world.accepted) == 2)
    assert [server.transport.peer.rpartition(":")[0] for server in world.accepted] == ["127.0.0.1", "[::1]"]


def test_a_name_is_listened_on_at_all_its_addresses(world: RealWorld) -> None:
    listener = world.listen("localhost")
    addresses = {entry[4][0] for entry in socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM)}
    if not has_ipv6():
        addresses.discard("::1")
    for count, address in enumerate(sorted(map(str, addresses)), 1):
        world.dial(listener.port, address)
        world.until(lambda count=count: len(world.accepted) == count)  # type: ignore[misc]


def test_without_descriptors_clients_wait_in_the_backlog_and_one_line_says_so(
    world: RealWorld, caplog: pytest.LogCaptureFixture
) -> None:
    listener = world.listen()
    clients = [world.dial(listener.port) for _ in range(20)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + 8, hard))
        world.until(lambda: len(caplog.records) == 1)
        accepted = len(world.accepted)
        assert 0 < accepted <= 8
        cpu_before = time.thread_time()
        started = world.clock.monotonic_ms()
        world.until(lambda: world.clock.monotonic_ms() > started + 350)
        assert time.thread_time() - cpu_before < 0.3, "the listener spins"
        assert len(caplog.records) == 1
        clients[0].send(b"the others go on")
        world.until(lambda: world.accepted[0].data == b"the others go on")
        world.accepted[0].transport.abort()
        world.until(lambda: len(world.accepted) == accepted + 1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    world.until(lambda: len(world.accepted) == 20)
    assert len(caplog.records) == 1
    assert "cannot accept connections" in caplog.records[0].getMessage()


@pytest.mark.parametrize("loop_kind", ["uvloop", "asyncio"])
def test_connections_leave_descriptors_for_files(loop_kind: str, caplog: pytest.LogCaptureFixture) -> None:
    world = RealWorld(loop_kind, connections_max=2)
    try:
        listener = world.listen()
        for _ in range(3):
            world.dial(listener.port)
        world.until(lambda: len(caplog.records) == 1)
        assert len(world.accepted) == 2
        world.accepted[0].transport.abort()
        world.until(lambda: len(world.accepted) == 3)
    finally:
        world.close()


@pytest.fixture(params=["uvloop", "asyncio"])
def hasty_world(request: pytest.FixtureRequest) -> Iterator[RealWorld]:
    made = RealWorld(request.param, connect_timeout_ms=150)
    yield made
    made.close()


class Connecting:
    """The events on both ends of a connect."""

    def __init__(self) -> None:
        self.recorders: list[Recorder] = []
        self.failures: list[Exception] = []

    def connected(self, transport: Transport) -> Receiver:
        self.recorders.append(Recorder(transport))
        return self.recorders[-1]

    @property
    def decided(self) -> bool:
        return bool(self.recorders or self.failures)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_connect_gives_a_transport(world: RealWorld, host: str) -> None:
    port = world.listen().port
    outcome = Connecting()
    world.network.connect(host, port, outcome.connected, outcome.failures.append)
    assert not outcome.decided
    world.until(lambda: outcome.decided and len(world.accepted) == 1)
    near, far = outcome.recorders[0], world.accepted[0]
    assert near.transport.peer == f"{host}:{port}"
    near.transport.write([b"question"])
    world.until(lambda: far.data == b"question")
    far.transport.write([b"answer"])
    world.until(lambda: near.data == b"answer")
    near.transport.close()
    world.until(lambda: far.closed_reasons == ["closed by the other side"])


def test_connecting_where_no_server_listens_fails_with_a_sentence(world: RealWorld) -> None:
    listener = world.listen()
    listener.close()
    outcome = Connecting()
    world.network.connect("127.0.0.1", listener.port, outcome.connected, outcome.failures.append)
    assert not outcome.decided
    world.until(lambda: outcome.decided)
    assert f"cannot connect to 127.0.0.1:{listener.port}: Connection refused" in str(outcome.failures[0])
    assert world.network.connections == 0


def test_a_name_that_does_not_exist_fails_the_connect(hasty_world: RealWorld) -> None:
    world = hasty_world  # a resolver that is not reachable may take long
    outcome = Connecting()
    world.network.connect("name.invalid", 9092, outcome.connected, outcome.failures.append)
    world.until(lambda: outcome.decided)
    assert len(outcome.failures) == 1


def test_a_connect_without_an_answer_fails_after_the_timeout(hasty_world: RealWorld) -> None:
    world = hasty_world
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        filling = []
        for _ in range(3):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
            filling.append(filler)
        outcome = Connecting()
        world.network.connect("127.0.0.1", deaf.getsockname()[1], outcome.connected, outcome.failures.append)
        world.until(lambda: outcome.decided)
        for filler in filling:
            filler.close()
    assert isinstance(outcome.failures[0], TimeoutError)
    assert "no answer in time" in str(outcome.failures[0])


def test_a_failing_owner_of_a_connect_costs_its_connection(world: RealWorld, caplog: pytest.LogCaptureFixture) -> None:
    port = world.listen().port

    def connected(transport: Transport) -> Receiver:
        raise RuntimeError("a bug")

    failures: list[Exception] = []
    world.network.connect("127.0.0.1", port, connected, failures.append)
    world.until(lambda: bool(world.accepted) and bool(world.accepted[0].closed_reasons))
    assert failures == []
    assert len(caplog.records) == 1
