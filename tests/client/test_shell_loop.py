"""The blocking loop on real sockets and the real clock."""

import socket
import threading
from collections.abc import Callable

import pytest

from quire.client.errors import TimedOutError
from quire.client.shell_loop import BlockingLoop
from quire.pending import Pending
from quire.seams import Transport

PATIENCE_MS = 20_000


class Collector:
    """A receiver that stores what it receives."""

    def __init__(self) -> None:
        self.room = bytearray(1 << 16)
        self.taken = bytearray()
        self.ended: Pending[str] = Pending()
        self.drains = 0

    def buffer(self) -> memoryview:
        return memoryview(self.room)

    def received(self, size: int) -> None:
        self.taken += self.room[:size]

    def drained(self) -> None:
        self.drains += 1

    def closed(self, reason: str) -> None:
        self.ended.complete(reason)


def connect(loop: BlockingLoop, host: str, port: int) -> tuple[Transport, Collector]:
    done: Pending[Transport | Exception] = Pending()
    collector = Collector()

    def connected(transport: Transport) -> Collector:
        done.complete(transport)
        return collector

    loop.connect(host, port, connected, done.complete)
    outcome = loop.run_until(done, PATIENCE_MS)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome, collector


def run_while(loop: BlockingLoop, condition: Callable[[], bool]) -> None:
    deadline = loop.monotonic_ms() + PATIENCE_MS
    while condition():
        assert loop.monotonic_ms() < deadline, "it did not happen"
        loop.run_once(100)


def test_timers_run_in_the_order_they_are_due_and_not_when_cancelled() -> None:
    loop = BlockingLoop()
    happened: list[str] = []
    done: Pending[None] = Pending()
    loop.call_later(200, lambda: happened.append("second"))
    loop.call_later(0, lambda: happened.append("first"))
    loop.call_later(100, lambda: happened.append("never")).cancel()
    loop.call_soon(lambda: happened.append("soon"))
    loop.call_later(210, lambda: done.complete(None))
    loop.run_until(done, PATIENCE_MS)
    assert sorted(happened) == ["first", "second", "soon"]
    assert happened.index("first") < happened.index("second")


def test_timers_that_were_taken_back_do_not_pile_up() -> None:
    loop = BlockingLoop()
    for _ in range(20_000):
        loop.call_later(60_000, lambda: None).cancel()
    assert len(loop._timers) < 5000


def test_waiting_ends_when_the_time_is_up() -> None:
    with pytest.raises(TimedOutError, match=r"0\.02 s"):
        BlockingLoop().run_until(Pending(), timeout_ms=20)


def test_a_refused_connection_is_reported_in_words() -> None:
    with pytest.raises(OSError, match="connection refused"):
        connect(BlockingLoop(), "127.0.0.1", 1)


def test_an_unresolvable_name_is_reported_in_words() -> None:
    with pytest.raises(OSError, match=r"name nowhere\.invalid does not resolve"):
        connect(BlockingLoop(), "nowhere.invalid", 9092)


def test_a_name_with_several_addresses_is_tried_until_one_takes_it() -> None:
    """localhost is often ::1 first; a server on 127.0.0.1 alone must still be found."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        transport, _ = connect(BlockingLoop(), "localhost", server.getsockname()[1])
        assert transport.peer.startswith("127.0.0.1:")


def test_more_than_a_socket_accepts_at_once_arrives_whole_and_draining_is_reported() -> None:
    data = bytes(range(256)) * 40_000
    with socket.create_server(("127.0.0.1", 0)) as server:
        loop = BlockingLoop()
        transport, collector = connect(loop, "127.0.0.1", server.getsockname()[1])
        other, _ = server.accept()
        got = bytearray()

        def read() -> None:
            while len(got) < len(data):
                got.extend(other.recv(1 << 20))

        transport.write([data[:1000], bytearray(data[1000:5000]), memoryview(data)[5000:]])
        assert transport.queued_bytes > 0
        reader = threading.Thread(target=read)
        reader.start()
        run_while(loop, lambda: transport.queued_bytes > 0)
        reader.join()
        run_while(loop, lambda: collector.drains == 0)
        assert bytes(got) == data
        other.close()


def test_bytes_of_the_other_side_are_received_and_its_end_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        loop = BlockingLoop()
        _, collector = connect(loop, "127.0.0.1", server.getsockname()[1])
        other, _ = server.accept()
        other.sendall(b"x" * 100_000)
        other.close()
        assert loop.run_until(collector.ended, PATIENCE_MS) == "closed by the other side"
        assert len(collector.taken) == 100_000


def test_a_paused_transport_receives_nothing_until_it_is_resumed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        loop = BlockingLoop()
        transport, collector = connect(loop, "127.0.0.1", server.getsockname()[1])
        other, _ = server.accept()
        transport.pause()
        other.sendall(b"later")
        loop.run_once(30)
        assert not collector.taken
        transport.resume()
        run_while(loop, lambda: not collector.taken)
        assert collector.taken == b"later"
        other.close()


def test_an_aborted_transport_ends_once_and_ignores_what_is_written_after() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        loop = BlockingLoop()
        transport, collector = connect(loop, "127.0.0.1", server.getsockname()[1])
        transport.abort()
        transport.abort()
        transport.close()
        transport.write([b"into the void"])
        assert loop.run_until(collector.ended, PATIENCE_MS) == "aborted by this side"


def test_closing_sends_what_is_queued_first() -> None:
    data = b"z" * 8_000_000
    with socket.create_server(("127.0.0.1", 0)) as server:
        loop = BlockingLoop()
        transport, collector = connect(loop, "127.0.0.1", server.getsockname()[1])
        other, _ = server.accept()
        got = bytearray()

        def read() -> None:
            while chunk := other.recv(1 << 20):
                got.extend(chunk)

        transport.write([data])
        transport.close()
        reader = threading.Thread(target=read)
        reader.start()
        loop.run_until(collector.ended, PATIENCE_MS)
        reader.join()
        assert len(got) == len(data)
        other.close()
