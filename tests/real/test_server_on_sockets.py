"""The server on real sockets: many clients, pipelined and torn, large requests, and a stop in the middle of it."""

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from quire.network.handler import ConnectionInfo, EncodedResponse
from quire.network.limits import Limits
from quire.network.server import Server
from quire.pending import Pending
from tests.network.memory import frame
from tests.real.real_world import RealWorld

MB = 1024 * 1024


class EchoWorld(RealWorld):
    """Echoes requests; those that begin with 'wait' after a short delay."""

    def __init__(self, loop_kind: str) -> None:
        super().__init__(loop_kind)
        self.server = Server(self.network, self.clock, self.handle, Limits())
        self.port = self.server.listen("PLAINTEXT", "127.0.0.1", 0)

    def handle(self, info: ConnectionInfo, request: memoryview) -> EncodedResponse | Pending[EncodedResponse]:
        answer = frame(bytes(request))
        if not answer.startswith(b"wait", 4):
            return [answer]
        pending: Pending[EncodedResponse] = Pending()
        self.clock.call_later(1, lambda: pending.complete([answer]))
        return pending

    def run_clients(self, clients: list[threading.Thread]) -> None:
        for client in clients:
            client.start()
        self.until(lambda: not any(client.is_alive() for client in clients))


@pytest.fixture(params=["uvloop", "asyncio"])
def world(request: pytest.FixtureRequest) -> Iterator[EchoWorld]:
    made = EchoWorld(request.param)
    yield made
    made.close()


def test_pipelined_requests_of_many_clients_are_answered_in_order(world: EchoWorld) -> None:
    right: list[bool] = []

    def client(number: int) -> None:
        sizes = [8 + (i * number * 37) % 3000 for i in range(200)]
        requests = b"".join(frame((b"wait" if i % 20 == 0 else b"echo") + bytes(size)) for i, size in enumerate(sizes))
        with socket.create_connection(("127.0.0.1", world.port)) as connection:
            sender = threading.Thread(target=connection.sendall, args=(requests,))
            sender.start()
            right.append(_read_all(connection, len(requests)) == requests)
            sender.join()

    world.run_clients([threading.Thread(target=client, args=(i,)) for i in range(8)])
    assert right == [True] * 8
    assert world.server.counters.requests == 1600
    world.until(lambda: world.server.counters.connections == 0)


def test_large_requests_leave_no_memory_behind(world: EchoWorld) -> None:
    right: list[bool] = []

    def client(number: int) -> None:
        request = frame(b"echo" + bytes([number]) * (MB * (1 + number)))
        with socket.create_connection(("127.0.0.1", world.port)) as connection:
            for _ in range(3):
                sender = threading.Thread(target=connection.sendall, args=(request,))
                sender.start()
                right.append(_read_all(connection, len(request)) == request)
                sender.join()

    world.run_clients([threading.Thread(target=client, args=(i,)) for i in range(4)])
    assert right == [True] * 12
    world.until(lambda: world.server.counters.connections == 0)
    assert world.server.pool.in_use_bytes == 0
    assert world.server.counters.queued_bytes == 0


@pytest.mark.parametrize("together", [True, False])
def test_requests_sent_before_the_client_closed_are_handled(world: EchoWorld, together: bool) -> None:
    handled: list[bytes] = []
    waiting: list[Pending[EncodedResponse]] = []

    def handle(info: ConnectionInfo, request: memoryview) -> EncodedResponse | Pending[EncodedResponse]:
        handled.append(bytes(request))
        if not handled[-1].startswith(b"wait"):
            return [frame(handled[-1])]
        waiting.append(Pending())
        return waiting[0]

    world.server.handle = handle
    with socket.create_connection(("127.0.0.1", world.port)) as connection:
        connection.sendall(frame(b"wait...1") + (frame(b"echo...2") if together else b""))
        world.until(lambda: bool(waiting))
        if not together:
            connection.sendall(frame(b"echo...2"))
    world.until(lambda: world.network.connections == (0 if together else 1))
    waiting[0].complete([frame(b"wait...1")])
    world.until(lambda: world.server.counters.connections == 0)
    assert handled == [b"wait...1", b"echo...2"]


def test_a_reset_behind_a_waiting_request_is_detected(
    world: EchoWorld,
) -> None:
    waiting: list[Pending[EncodedResponse]] = []

    def handle(info: ConnectionInfo, request: memoryview) -> Pending[EncodedResponse]:
        waiting.append(Pending())
        return waiting[0]

    world.server.handle = handle
    with socket.create_connection(("127.0.0.1", world.port)) as connection:
        connection.sendall(frame(b"wait...1"))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    world.until(lambda: bool(waiting))
    world.until(lambda: world.network.connections == 0)
    world.until(lambda: world.server.counters.connections == 0)


def test_a_stop_under_load_cuts_no_answer_in_two(world: EchoWorld) -> None:
    requests = frame(b"echo" + bytes(500)) * 5 + frame(b"wait" + bytes(20))
    leftovers: list[int] = []
    served: list[int] = []
    stopped = threading.Event()

    def client() -> None:
        received = bytearray()
        with socket.create_connection(("127.0.0.1", world.port)) as connection:
            connection.settimeout(60)
            try:
                while True:
                    connection.sendall(requests)
                    while len(received) % len(requests) or not received:
                        data = connection.recv(65536)
                        if not data:
                            raise ConnectionResetError
                        received += data
                    served.append(1)
                    received.clear()
            except ConnectionError:
                leftovers.append(_half_answer(received))

    clients = [threading.Thread(target=client) for _ in range(10)]
    for thread in clients:
        thread.start()
    world.until(lambda: len(served) > 100)
    world.server.stop(60_000, stopped.set)
    world.until(stopped.is_set)
    world.until(lambda: not any(thread.is_alive() for thread in clients))
    assert leftovers == [0] * 10
    assert world.server.counters.connections == 0
    assert world.network.connections == 0


def _read_all(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        data = connection.recv(1 << 20)
        if not data:
            break
        received += data
    return bytes(received)


def _half_answer(received: bytearray) -> int:
    """The bytes after the last complete answer."""
    at = 0
    while at + 4 <= len(received):
        end = at + 4 + int.from_bytes(received[at : at + 4], "big")
        if end > len(received):
            break
        at = end
    return len(received) - at
