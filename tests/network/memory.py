"""A network without sockets, whose clients the test controls: each byte arrives when the test decides."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from quire.seams import Clock, FileSlice, Part, Receiver, Transport


def frame(payload: bytes | memoryview) -> bytes:
    return len(payload).to_bytes(4, "big") + bytes(payload)


def frames_in(data: bytes | bytearray) -> list[bytes]:
    """The payloads of the frames in `data`, which must all be complete."""
    found = []
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        assert len(data) >= at + 4 + size, f"half an answer: {bytes(data[at : at + 100])!r}"
        found.append(bytes(data[at + 4 : at + 4 + size]))
        at += 4 + size
    return found


class MemoryTransport:
    """Implements Transport. `takes` is how many bytes the client reads without being told; the default is all."""

    def __init__(self, clock: Clock, peer: str, takes: int | None = None) -> None:
        self.taken = bytearray()
        self.sent_bytes = 0
        self.takes = takes
        self.writes = 0
        self.paused = False
        self.closed_reasons: list[str] = []
        self.receiver: Receiver | None = None
        self._clock = clock
        self._peer = peer
        self._inbox = bytearray()
        self._queue = bytearray()
        self._closing = False
        self._ended = False
        self._left: Callable[[], None] | None = None
        self._finished = False

    @property
    def peer(self) -> str:
        return self._peer

    @property
    def queued_bytes(self) -> int:
        return len(self._queue)

    def write(self, parts: Sequence[Part]) -> None:
        if self._closing or self._ended:
            return
        self.writes += 1
        self._queue += b"".join(part.read() if isinstance(part, FileSlice) else part for part in parts)
        if self.takes is None:
            self._move(len(self._queue))
        else:
            moved = self._move(self.takes)
            self.takes -= moved

    def pause(self, left: Callable[[], None] | None = None) -> None:
        self.paused = True
        self._left = left

    def resume(self) -> None:
        self.paused = False
        self._clock.call_soon(self._deliver)

    def close(self) -> None:
        if not self._ended:
            self._closing = True
            self._close_if_sent()

    def abort(self) -> None:
        self._end("aborted")

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def unread_bytes(self) -> int:
        """Bytes that the client has sent and the server has not received."""
        return len(self._inbox)

    # --- The client's side

    def send(self, data: bytes) -> None:
        self.sent_bytes += len(data)
        self._inbox += data
        self._deliver()

    def take(self, size: int | None = None) -> None:
        """Reads up to `size` of the bytes that wait for the client; the default is all."""
        behind = bool(self._queue)
        self._move(len(self._queue) if size is None else size)
        if behind and not self._queue:
            self._close_if_sent()
            if not self._ended:
                assert self.receiver is not None
                self.receiver.drained()

    def hang_up(self) -> None:
        """Resets: what was not received is lost."""
        self._end("closed by the other side")

    def finish(self) -> None:
        """Closes: the server still receives the remaining bytes, and then the end."""
        self._finished = True
        self._deliver()
        if self._inbox and self.paused and self._left is not None:
            self._left()

    def _deliver(self) -> None:
        while self._inbox and not self.paused and not self._closing and not self._ended:
            assert self.receiver is not None
            room = self.receiver.buffer()
            assert len(room) > 0, "a receiver offered no room"
            size = min(len(room), len(self._inbox))
            room[:size] = self._inbox[:size]
            del self._inbox[:size]
            self.receiver.received(size)
        if self._finished and not self._inbox:
            self._end("closed by the other side")

    def _move(self, size: int) -> int:
        moved = min(size, len(self._queue))
        self.taken += self._queue[:moved]
        del self._queue[:moved]
        return moved

    def _close_if_sent(self) -> None:
        if self._closing and not self._queue:
            self._end("closed by this side")

    def _end(self, reason: str) -> None:
        if not self._ended:
            self._ended = True
            self._queue.clear()
            self._clock.call_soon(lambda: self._report(reason))

    def _report(self, reason: str) -> None:
        self.closed_reasons.append(reason)
        if self.receiver is not None:
            self.receiver.closed(reason)


@dataclass(slots=True)
class MemoryListener:
    port: int
    accept: Callable[[Transport], Receiver | None]
    open: bool = True

    def close(self) -> None:
        self.open = False


@dataclass(slots=True)
class MemoryNetwork:
    clock: Clock
    listeners: list[MemoryListener] = field(default_factory=list)

    def listen(self, host: str, port: int, accept: Callable[[Transport], Receiver | None]) -> MemoryListener:
        listener = MemoryListener(port or 10_000 + len(self.listeners), accept)
        self.listeners.append(listener)
        return listener

    def connect(
        self,
        host: str,
        port: int,
        connected: Callable[[Transport], Receiver],
        failed: Callable[[Exception], None],
    ) -> None:
        raise NotImplementedError

    def client(self, host: str = "10.0.0.1", listener: int = 0, takes: int | None = None) -> MemoryTransport:
        """A new client of a listener; whether it was refused is in `ended`."""
        transport = MemoryTransport(self.clock, f"{host}:5000", takes)
        transport.receiver = self.listeners[listener].accept(transport)
        if transport.receiver is None:
            transport.abort()
        return transport
