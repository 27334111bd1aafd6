"""Connections: bytes in, buffers and file slices out, and who may wait for whom."""

from collections.abc import Callable, Sequence
from typing import Protocol

from quire.seams.disk import Buffer, FileSlice

Part = Buffer | FileSlice


class Transport(Protocol):
    """One connection, as its owner sees it: plain socket, TLS or simulated."""

    @property
    def peer(self) -> str:
        """`host:port` of the other side."""
        ...

    @property
    def queued_bytes(self) -> int:
        """Bytes handed to `write` that the other side has not taken yet, file slices included."""
        ...

    def write(self, parts: Sequence[Part]) -> None:
        """Sends what it can at once and keeps the rest; parts may be used until they are sent.

        Parts that are not `bytes` or FileSlice and could not be sent at once are copied, so a caller may reuse its
        buffers as soon as this returns.
        """
        ...

    def pause(self, left: Callable[[], None] | None = None) -> None:
        """No more `received` until `resume`: back-pressure reaches the sender.

        If the other side goes meanwhile, `closed` follows at once. If bytes of it are still unread, `left` is called
        instead, once, and never from within this call: the rest comes after `resume`, and then `closed`.
        """
        ...

    def resume(self) -> None: ...

    def close(self) -> None:
        """Sends what is queued, then closes; `closed` follows. Nothing is received any more."""
        ...

    def abort(self) -> None:
        """Closes at once, dropping what is queued; `closed` follows."""
        ...


class Receiver(Protocol):
    """What a connection's owner implements. The transport asks for room, fills it, and says how much came.

    Asking instead of handing over a buffer lets a large frame be received straight into its own memory.
    """

    def buffer(self) -> memoryview:
        """Writable room for the next bytes; never empty."""
        ...

    def received(self, size: int) -> None:
        """`size` bytes are now in the room last asked for."""
        ...

    def drained(self) -> None:
        """Everything queued has been taken."""
        ...

    def closed(self, reason: str) -> None:
        """The connection is gone; called exactly once, last."""
        ...


class Listener(Protocol):
    @property
    def port(self) -> int:
        """The port in use, also when port 0 was asked for."""
        ...

    def close(self) -> None: ...


class Network(Protocol):
    """Where connections come from."""

    def listen(self, host: str, port: int, accept: Callable[[Transport], Receiver | None]) -> Listener:
        """Calls `accept` for each new connection; None refuses it."""
        ...

    def connect(
        self,
        host: str,
        port: int,
        connected: Callable[[Transport], Receiver],
        failed: Callable[[Exception], None],
    ) -> None: ...
