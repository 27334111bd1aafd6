"""Shared by the socket tests: an event loop that runs step by step, clients on 127.0.0.1, and a receiver that records
events."""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import TypeVar

from quire.real.clock import RealClock
from quire.real.disk import RealDisk, RealFile
from quire.real.jobs import ThreadJobs
from quire.real.loop import new_event_loop
from quire.real.sockets import SocketListener, SocketNetwork
from quire.seams import Jobs, Receiver, Transport

T = TypeVar("T")

GIVE_UP_S = 60


class Recorder:
    """A receiver that records its calls."""

    def __init__(self, transport: Transport, room: int = 4096) -> None:
        self.transport = transport
        self.data = bytearray()
        self.drains = 0
        self.closed_reasons: list[str] = []
        self.fails = False
        self.when_received: Callable[[], None] = lambda: None
        self._room = memoryview(bytearray(room))

    def buffer(self) -> memoryview:
        return self._room

    def received(self, size: int) -> None:
        if self.fails:
            raise RuntimeError("a bug in the receiver")
        self.data += self._room[:size]
        self.when_received()

    def drained(self) -> None:
        assert self.transport.queued_bytes == 0
        self.drains += 1

    def closed(self, reason: str) -> None:
        self.closed_reasons.append(reason)


class ColdFile(RealFile):
    """A file that is never in the page cache."""

    __slots__ = ()

    def cached(self, size: int, position: int) -> bool:
        return False

    def pread_ready(self, buffer: memoryview, position: int) -> int:
        return 0


class RealWorld:
    def __init__(
        self,
        loop_kind: str,
        jobs: Jobs | None = None,
        connections_max: int | None = None,
        connect_timeout_ms: float = GIVE_UP_S * 1000,
        **buffers: int,
    ) -> None:
        self.loop = new_event_loop() if loop_kind == "uvloop" else asyncio.new_event_loop()
        self.clock = RealClock(self.loop)
        self.jobs = jobs if jobs is not None else ThreadJobs(self.loop)
        self.network = SocketNetwork(
            self.loop,
            self.clock,
            self.jobs,
            connections_max=connections_max,
            connect_timeout_ms=connect_timeout_ms,
            **buffers,
        )
        self.disk = RealDisk()
        self.accepted: list[Recorder] = []
        self.refusing = False
        self._listeners: list[SocketListener] = []
        self._clients: list[socket.socket] = []

    def accept(self, transport: Transport) -> Receiver | None:
        if self.refusing:
            return None
        self.accepted.append(Recorder(transport))
        return self.accepted[-1]

    def listen(self, host: str = "127.0.0.1") -> SocketListener:
        self._listeners.append(self.network.listen(host, 0, self.accept))
        return self._listeners[-1]

    def client(self, receive_buffer: int | None = None) -> tuple[socket.socket, Recorder]:
        """A connected pair: the client's socket, and the receiver of the server side."""
        listener = self._listeners[0] if self._listeners else self.listen()
        client = self.dial(listener.port, receive_buffer=receive_buffer)
        before = len(self.accepted)
        self.until(lambda: len(self.accepted) > before)
        return client, self.accepted[-1]

    def dial(self, port: int, host: str = "127.0.0.1", receive_buffer: int | None = None) -> socket.socket:
        client = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        self._clients.append(client)
        if receive_buffer is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.connect((host, port))
        client.setblocking(False)
        return client

    def turn(self) -> None:
        """One round of the event loop."""
        self.loop.call_later(0.001, self.loop.stop)
        self.loop.run_forever()

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + GIVE_UP_S
        while not condition():
            assert time.monotonic() < deadline, "what was waited for did not happen"
            self.turn()

    def read(self, client: socket.socket, size: int) -> bytes:
        """What the client receives, up to `size` bytes or the end of the connection."""
        data = bytearray()

        def enough() -> bool:
            try:
                while len(data) < size:
                    piece = client.recv(min(size - len(data), 1 << 20))
                    if not piece:
                        return True
                    data.extend(piece)
            except BlockingIOError:
                return False
            return True

        self.until(enough)
        return bytes(data)

    def file(self, path: str, content: bytes) -> RealFile:
        file = self.disk.open(path, create=True)
        file.pwritev([content], 0)
        return file

    def cold(self, path: str, content: bytes) -> ColdFile:
        file = self.file(path, content)
        file.__class__ = ColdFile
        assert isinstance(file, ColdFile)
        return file

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()
        for client in self._clients:
            client.close()
        for recorder in self.accepted:
            recorder.transport.abort()
        self.turn()
        self.jobs.stop()
        self.loop.close()
