"""Sockets for the blocking loop and for asyncio: opening a connection, sending and receiving.

The node has a socket transport of its own (`real/socket_transport.py`); docs/design-choices.md says why there are two.
"""

import errno
import itertools
import os
import selectors
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from quire.seams import FileSlice, Part, Receiver, Timer, Transport

CONNECT_TIMEOUT_MS = 10_000.0
SEND_BUFFER_BYTES = 1 << 20
PARTS_AT_ONCE = 64


class Loop(Protocol):
    """The interface of the event loop that a socket uses."""

    def watch(self, connection: socket.socket | int, events: int, callback: Callable[[int], None]) -> None: ...

    def call_soon(self, callback: Callable[[], None]) -> None: ...

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer: ...


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


class Attempt:
    """Connects to the first address of a name that accepts the connection, within one time limit for all."""

    def __init__(
        self,
        loop: Loop,
        addresses: list[tuple[int, Any]],
        connected: Callable[[Transport], Receiver],
        failed: Callable[[Exception], None],
    ) -> None:
        self._loop = loop
        self._addresses = deque(addresses)
        self._connected = connected
        self._failed = failed
        self._socket: socket.socket | None = None
        self._timer = loop.call_later(CONNECT_TIMEOUT_MS, self._expire)
        loop.call_soon(self._next)

    def _next(self) -> None:
        family, address = self._addresses.popleft()
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        code = self._socket.connect_ex(address)
        if code in (0, errno.EINPROGRESS):
            self._loop.watch(self._socket, selectors.EVENT_WRITE, self._decided)
        else:
            self._refused(OSError(code, os.strerror(code)))

    def _decided(self, events: int) -> None:
        assert self._socket is not None
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._refused(OSError(code, os.strerror(code)))
            return
        self._timer.cancel()
        transport = SocketTransport(self._loop, self._socket)
        transport.attach(self._connected(transport))

    def _refused(self, error: OSError) -> None:
        assert self._socket is not None
        self._loop.watch(self._socket, 0, self._decided)
        self._socket.close()
        if self._addresses:
            self._next()
            return
        self._timer.cancel()
        self._failed(OSError(_reason(error)))

    def _expire(self) -> None:
        self._addresses.clear()
        self._refused(OSError(f"no connection within {CONNECT_TIMEOUT_MS / 1000:g} s"))


class SocketTransport:
    """One connected socket: the Transport seam for clients."""

    def __init__(self, loop: Loop, connection: socket.socket) -> None:
        self._loop = loop
        self._socket = connection
        self._receiver: Receiver | None = None
        self._queue: deque[memoryview] = deque()
        self._paused = False
        self._closing = False
        self._open = True
        host, port = connection.getpeername()[:2]
        self.peer = f"{host}:{port}"

    def attach(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._watch()

    @property
    def queued_bytes(self) -> int:
        return sum(len(part) for part in self._queue)

    def write(self, parts: Sequence[Part]) -> None:
        if not self._open or self._closing:
            return
        was_empty = not self._queue
        for part in parts:
            data = part.read() if isinstance(part, FileSlice) else part
            if len(data):
                self._queue.append(memoryview(data if isinstance(data, bytes) else bytes(data)))
        if was_empty and self._queue:
            self._send()
            if self._open and self._queue:
                self._watch()

    def pause(self, left: Callable[[], None] | None = None) -> None:
        """`left` is never called: a client resumes soon, and notices the end then."""
        self._paused = True
        self._watch()

    def resume(self) -> None:
        self._paused = False
        self._watch()

    def close(self) -> None:
        self._closing = True
        if not self._queue:
            self._end("closed by this side")

    def abort(self) -> None:
        self._end("aborted by this side")

    def _watch(self) -> None:
        if not self._open:
            return
        events = 0 if self._paused else selectors.EVENT_READ
        if self._queue:
            events |= selectors.EVENT_WRITE
        self._loop.watch(self._socket, events, self._happened)

    def _happened(self, events: int) -> None:
        if events & selectors.EVENT_WRITE and self._queue:
            self._send()
            if self._open and not self._queue:
                self._watch()
                assert self._receiver is not None
                self._receiver.drained()
                if self._closing:
                    self._end("closed by this side")
        if events & selectors.EVENT_READ and self._open and not self._paused:
            self._receive()

    def _send(self) -> None:
        try:
            while self._queue:
                sent = self._socket.sendmsg(list(itertools.islice(self._queue, PARTS_AT_ONCE)))
                while sent:
                    first = self._queue.popleft()
                    if sent < len(first):
                        self._queue.appendleft(first[sent:])
                        break
                    sent -= len(first)
        except BlockingIOError:
            pass
        except OSError as error:
            self._end(_reason(error))

    def _receive(self) -> None:
        assert self._receiver is not None
        try:
            size = self._socket.recv_into(self._receiver.buffer())
        except BlockingIOError:
            return
        except OSError as error:
            self._end(_reason(error))
            return
        if size:
            self._receiver.received(size)
        else:
            self._end("closed by the other side")

    def _end(self, reason: str) -> None:
        if not self._open:
            return
        self._open = False
        self._queue.clear()
        self._loop.watch(self._socket, 0, self._happened)
        self._socket.close()
        if self._receiver is not None:
            receiver = self._receiver
            self._loop.call_soon(lambda: receiver.closed(reason))
