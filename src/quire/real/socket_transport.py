"""One TCP connection on an event loop, with raw non-blocking sockets: the Transport seam.

Receiving: one receive per event, and another only if the first has filled its buffer. A pause is lazy: it costs nothing
unless the client sends something meanwhile. After the peer has hung up (`HangUps`), the loop reports no more events;
the remaining bytes are received to the end, as fast as the receiver accepts them.

Sending: `SendQueue` keeps what the socket does not accept at once, and sends it when the socket is writable again.

An error of the socket or of a file ends only this connection. `closed` is called exactly once, and never from within a
call that the receiver made.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Sequence

from quire.real.hang_ups import HangUps
from quire.real.send_queue import ColdSlice, SendQueue
from quire.seams import Clock, Jobs, Part, Receiver
from quire.throttled_log import ThrottledLog

_log = logging.getLogger("quire.sockets")

_RECEIVE_PER_EVENT_BYTES = 2 * 1024 * 1024
"""How much one connection receives before other connections have their turn."""
_SCRATCH_BYTES = 256 * 1024


class Shared:
    """What all connections of a network share."""

    def __init__(self, loop: asyncio.AbstractEventLoop, jobs: Jobs, clock: Clock) -> None:
        self.loop = loop
        self.jobs = jobs
        self.throttled_log = ThrottledLog(_log, clock)
        self.scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self.hang_ups = HangUps(loop)
        self.sockets = 0
        """The number of connections with a descriptor."""


def prepare(connection: socket.socket) -> None:
    """Configures a socket. Responses are complete when they are written, so TCP must not wait for more (no delay)."""
    connection.setblocking(False)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


class SocketTransport:
    __slots__ = (
        "_closing",
        "_ended",
        "_hung_up",
        "_left",
        "_number",
        "_paused",
        "_peer",
        "_queue",
        "_reading",
        "_reading_ahead",
        "_receiver",
        "_shared",
        "_socket",
        "_writing",
        "queued_bytes",
    )

    def __init__(self, shared: Shared, connection: socket.socket, peer: str) -> None:
        """Takes over `connection`, connected and non-blocking."""
        self._shared = shared
        self._socket = connection
        self._number = connection.fileno()
        self._peer = peer
        self._receiver: Receiver | None = None
        self._queue = SendQueue(connection, shared.scratch)
        self.queued_bytes = 0
        self._reading = False
        self._writing = False
        self._paused = False
        self._closing = False
        self._ended = False
        self._hung_up = False
        """The peer has closed or reset: all bytes that it sent can be received now."""
        self._left: Callable[[], None] | None = None
        self._reading_ahead = False
        shared.sockets += 1

    def begin(self, receiver: Receiver) -> None:
        """Calls `receiver` for all events from now on."""
        self._receiver = receiver
        self._watch_reading()
        try:
            self._shared.hang_ups.watch(self._socket, self._peer_closed)
        except OSError as error:
            self._end(_reason(error))

    # --- The seam

    @property
    def peer(self) -> str:
        return self._peer

    def write(self, parts: Sequence[Part]) -> None:
        if self._closing or self._ended:
            return
        queue = self._queue
        try:
            if queue.size:
                queue.add(parts)
                self.queued_bytes = queue.size
                return
            if len(parts) == 1 and isinstance(answer := parts[0], bytes):
                # The usual response, which the socket nearly always accepts completely.
                sent = self._socket.send(answer)
                if sent == len(answer):
                    return
                parts = [memoryview(answer)[sent:]]
            queue.send_at_once(parts)
        except BlockingIOError:
            queue.add(parts)
        except ColdSlice as cold:
            self._read_ahead(cold)
        except OSError as error:
            self._end(_reason(error))
        self.queued_bytes = queue.size
        if queue.size and not self._reading_ahead:
            self._watch_writing()

    def pause(self, left: Callable[[], None] | None = None) -> None:
        self._paused = True
        self._left = left

    def resume(self) -> None:
        self._paused = False
        self._left = None
        if self._hung_up:
            self._shared.loop.call_soon(self._receive_rest)
        else:
            self._watch_reading()

    def close(self) -> None:
        if not self._closing and not self._ended:
            self._closing = True
            self._unwatch_reading()
            if not self._queue.size:
                self._end("closed by this side")

    def abort(self) -> None:
        self._end("aborted by this side")

    # --- Events

    def _readable(self) -> None:
        if self._paused:
            self._readable_while_paused()
            return
        receiver = self._receiver
        assert receiver is not None
        received = 0
        try:
            while received < _RECEIVE_PER_EVENT_BYTES:
                room = receiver.buffer()
                try:
                    size = self._socket.recv_into(room)
                except BlockingIOError:
                    return
                except OSError as error:
                    self._end(_reason(error))
                    return
                if size == 0:
                    self._end("closed by the other side")
                    return
                receiver.received(size)
                if self._closing or self._ended:
                    return
                if self._paused:
                    self._readable_while_paused()
                    return
                if size < len(room) and not self._hung_up:
                    return
                received += size
        except Exception:
            self._receiver_failed()
            return
        if self._hung_up:
            self._shared.loop.call_soon(self._receive_rest)

    def _readable_while_paused(self) -> None:
        """Leaves bytes unread until `resume`, but reports at once that the peer has gone."""
        try:
            gone = not self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError as error:
            self._end(_reason(error))
            return
        if gone:
            self._end("closed by the other side")
            return
        self._unwatch_reading()
        if self._hung_up and self._left is not None:
            left, self._left = self._left, None
            left()

    def _peer_closed(self, broken: bool) -> None:
        self._hung_up = True
        if self._closing and broken:
            self._end("reset by the other side")
        self._unwatch_reading()
        self._receive_rest()

    def _receive_rest(self) -> None:
        if not self._closing and not self._ended:
            self._readable()

    def _writable(self) -> None:
        try:
            self._queue.send()
        except ColdSlice as cold:
            self._unwatch_writing()
            self._read_ahead(cold)
        except OSError as error:
            self._end(_reason(error))
        self.queued_bytes = self._queue.size
        if not self.queued_bytes and not self._ended:
            self._all_sent()

    def _all_sent(self) -> None:
        self._unwatch_writing()
        if self._closing:
            self._end("closed by this side")
            return
        assert self._receiver is not None
        try:
            self._receiver.drained()
        except Exception:
            self._receiver_failed()

    # --- Cold slices

    def _read_ahead(self, cold: ColdSlice) -> None:
        self._reading_ahead = True
        self._shared.jobs.submit(cold.read, lambda data: self._was_read(cold, data), self._read_failed)

    def _was_read(self, cold: ColdSlice, data: bytes | None) -> None:
        self._reading_ahead = False
        if self._ended:
            return
        try:
            self._queue.is_warm(cold, data)
        except OSError as error:
            self._read_failed(error)
        else:
            self._watch_writing()

    def _read_failed(self, error: Exception) -> None:
        self._reading_ahead = False
        if not self._ended:
            self._shared.throttled_log.error(
                "closing the connection from %s: the requested records could not be read: %s", self._peer, error
            )
            self._end(_reason(error))

    # --- The end

    def _receiver_failed(self) -> None:
        self._shared.throttled_log.exception("closing the connection from %s: its owner failed", self._peer)
        self._end("its owner failed")

    def _end(self, reason: str) -> None:
        if self._ended:
            return
        self._unwatch_reading()
        self._unwatch_writing()
        self._ended = True
        self._queue.clear()
        self.queued_bytes = 0
        self._shared.hang_ups.forget(self._number)
        self._socket.close()
        self._shared.sockets -= 1
        if self._receiver is not None:
            self._shared.loop.call_soon(self._receiver.closed, reason)
            # Ends the cycle of references: both are freed at once, not by the garbage collector.
            self._receiver = None

    # --- The event loop's interest in this socket

    def _watch_reading(self) -> None:
        if not (self._reading or self._closing or self._ended or self._hung_up):
            self._reading = True
            self._shared.loop.add_reader(self._number, self._readable)

    def _unwatch_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._shared.loop.remove_reader(self._number)

    def _watch_writing(self) -> None:
        if not self._writing and not self._ended:
            self._writing = True
            self._shared.loop.add_writer(self._number, self._writable)

    def _unwatch_writing(self) -> None:
        if self._writing:
            self._writing = False
            self._shared.loop.remove_writer(self._number)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
