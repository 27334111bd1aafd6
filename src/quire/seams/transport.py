"""Connections: receiving bytes, sending buffers and file slices, and back-pressure in both directions."""

from collections.abc import Callable, Sequence
from typing import Protocol

from quire.seams.disk import Buffer, FileSlice

Part = Buffer | FileSlice


class Transport(Protocol):
    """One connection as its owner uses it: a plain socket, TLS or simulated."""

    @property
    def peer(self) -> str:
        """`host:port` of the other side."""
        ...

    @property
    def queued_bytes(self) -> int:
        """Bytes handed to `write` that the other side has not taken yet, file slices included."""
        ...

    def write(self, parts: Sequence[Part]) -> None:
        """Sends as much as possible at once and queues the rest.

        Parts that are not `bytes` or FileSlice and cannot be sent at once are copied, so the caller may reuse its
        buffers when this returns.
        """
        ...

    def pause(self, left: Callable[[], None] | None = None) -> None:
        """Stops calling `received` until `resume`: back-pressure reaches the sender.

        If the peer disconnects meanwhile, `closed` follows at once. If bytes from it are still unread, `left` is called
        instead, once, and never from within this call: the bytes follow after `resume`, and then `closed`.
        """
        ...

    def resume(self) -> None: ...

    def close(self) -> None:
        """Stops receiving, sends what is queued, then closes; `closed` follows."""
        ...

    def abort(self) -> None:
        """Closes at once, dropping what is queued; `closed` follows."""
        ...


class Receiver(Protocol):
    """What the owner of a connection implements. The transport receives into the buffer that the owner provides.

    Because the owner chooses the buffer, a large frame is received straight into its own memory.
    """

    def buffer(self) -> memoryview:
        """Writable memory for the next bytes; never empty."""
        ...

    def received(self, size: int) -> None:
        """The last result of `buffer` now holds `size` bytes."""
        ...

    def drained(self) -> None:
        """Everything that was queued has been sent."""
        ...

    def closed(self, reason: str) -> None:
        """The connection has ended; called exactly once, as the last call."""
        ...


class Listener(Protocol):
    @property
    def port(self) -> int:
        """The port in use, also if `listen` was called with port 0."""
        ...

    def close(self) -> None: ...


class Connector(Protocol):
    """Opens connections: all that a client needs."""

    def connect(
        self,
        host: str,
        port: int,
        connected: Callable[[Transport], Receiver],
        failed: Callable[[Exception], None],
    ) -> None:
        """Calls exactly one of `connected` and `failed`, once."""
        ...


class Network(Connector, Protocol):
    """Opens and accepts connections."""

    def listen(self, host: str, port: int, accept: Callable[[Transport], Receiver | None]) -> Listener:
        """Calls `accept` for each new connection; None refuses it."""
        ...
