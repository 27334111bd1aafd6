"""Listening sockets and outgoing connections: the Network seam.

A listener that cannot accept because descriptors have run out logs that once, leaves clients in the backlog and retries
a little later; it never spins. Connections use at most `connections_max` descriptors, a little less than half of all,
so that the rest is available for files.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Mapping

from quire.real.open_files import raise_descriptor_limit
from quire.real.socket_connect import Connect
from quire.real.socket_transport import Shared, SocketTransport, prepare
from quire.seams import Clock, Jobs, Receiver, Transport

_log = logging.getLogger("quire.sockets")

SYSTEM_CHOOSES = -1
"""As the size of a socket's buffer: the operating system chooses the size and adapts it."""

_ACCEPTS_PER_EVENT = 64
_BACK_OFF_MS = 100
_OTHER_DESCRIPTORS = 64
"""Those of listeners, standard streams and the event loop."""
_CLIENT_IS_GONE = (errno.ECONNABORTED, errno.EPROTO, errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH)
"""Errors of accept(2) on Linux that are about the connection, not about the listener."""

Accept = Callable[[Transport], Receiver | None]


class SocketNetwork:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        jobs: Jobs,
        *,
        backlog: int = 1024,
        connections_max: int | None = None,
        connect_timeout_ms: float = 10_000,
        send_buffer_bytes: int = SYSTEM_CHOOSES,
        receive_buffer_bytes: int = SYSTEM_CHOOSES,
    ) -> None:
        """The two buffer sizes are those of accepted connections."""
        self._shared = Shared(loop, jobs, clock)
        self._clock = clock
        self._backlog = backlog
        self._buffers = {socket.SO_SNDBUF: send_buffer_bytes, socket.SO_RCVBUF: receive_buffer_bytes}
        self._connections_max = connections_max or max(16, raise_descriptor_limit() // 2 - _OTHER_DESCRIPTORS)
        self._connect_timeout_ms = connect_timeout_ms

    @property
    def connections(self) -> int:
        return self._shared.sockets

    def listen(self, host: str, port: int, accept: Accept) -> "SocketListener":
        """Listens on every address of `host` ("localhost" has two); "" means all addresses of the machine."""
        sockets = _bind(host, port, self._backlog, self._buffers)
        return SocketListener(self._shared, self._clock, sockets, accept, self._connections_max)

    def connect(
        self,
        host: str,
        port: int,
        connected: Callable[[Transport], Receiver],
        failed: Callable[[Exception], None],
    ) -> None:
        Connect(self._shared, self._clock, host, port, connected, failed, self._connect_timeout_ms).start()


class SocketListener:
    def __init__(
        self,
        shared: Shared,
        clock: Clock,
        sockets: list[socket.socket],
        accept: Accept,
        connections_max: int,
    ) -> None:
        self._shared = shared
        self._clock = clock
        self._sockets = sockets
        self._accept = accept
        self._connections_max = connections_max
        self._port: int = sockets[0].getsockname()[1]
        self._exhausted = False
        self._watch()

    @property
    def port(self) -> int:
        return self._port

    def close(self) -> None:
        self._unwatch()
        for listening in self._sockets:
            listening.close()
        self._sockets = []

    def _watch(self) -> None:
        for listening in self._sockets:
            self._shared.loop.add_reader(listening.fileno(), self._acceptable, listening)

    def _unwatch(self) -> None:
        for listening in self._sockets:
            self._shared.loop.remove_reader(listening.fileno())

    def _acceptable(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTS_PER_EVENT):
            if self._shared.sockets >= self._connections_max:
                self._back_off(f"there are already {self._connections_max} connections")
                return
            try:
                connection, address = listening.accept()
            except BlockingIOError:
                self._exhausted = False
                return
            except OSError as error:
                if error.errno not in _CLIENT_IS_GONE:
                    self._back_off(str(error))
                    return
            else:
                self._accepted(connection, address)

    def _accepted(self, connection: socket.socket, address: tuple[str, int]) -> None:
        try:
            prepare(connection)
        except OSError as error:
            _log.debug("a client disconnected before it was accepted: %s", error)
            connection.close()
            return
        transport = SocketTransport(self._shared, connection, peer_name(address))
        try:
            receiver = self._accept(transport)
        except Exception:
            self._shared.throttled_log.exception("refusing the connection from %s: its owner failed", transport.peer)
            receiver = None
        if receiver is None:
            transport.abort()
        else:
            transport.begin(receiver)

    def _back_off(self, reason: str) -> None:
        if not self._exhausted:
            self._exhausted = True
            self._shared.throttled_log.error("cannot accept connections on port %d for now: %s", self._port, reason)
        self._unwatch()
        self._clock.call_later(_BACK_OFF_MS, self._watch)


def peer_name(address: tuple[str, int]) -> str:
    host, port = address[0], address[1]
    if host.startswith("::ffff:"):
        # An IPv4 client on a dual-stack socket: the limits per address use its IPv4 address.
        host = host[len("::ffff:") :]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _bind(host: str, port: int, backlog: int, buffers: Mapping[int, int]) -> list[socket.socket]:
    """One listening socket per address, all on the same port. Addresses that this machine cannot use are left out.

    The IPv6 wildcard address also accepts IPv4 clients.
    """
    if not host and socket.has_dualstack_ipv6():
        host = "::"
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    failure: OSError | None = None
    for family, _, _, _, address in sorted(dict.fromkeys(found), key=lambda entry: entry[0]):
        try:
            sockets.append(_listening(family, (address[0], port, *address[2:]), backlog, buffers, both=host == "::"))
        except OSError as error:
            failure = failure or error
        else:
            port = sockets[-1].getsockname()[1]
    if failure is not None and (not sockets or failure.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)):
        for listening in sockets:
            listening.close()
        raise failure
    return sockets


def _listening(
    family: int, address: tuple[object, ...], backlog: int, buffers: Mapping[int, int], *, both: bool
) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for buffer, size in buffers.items():
            if size != SYSTEM_CHOOSES:
                # Connections inherit the size from their listener, and announce it with their first packet.
                listening.setsockopt(socket.SOL_SOCKET, buffer, size)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if both else 1)
        listening.setblocking(False)
        listening.bind(address)
        listening.listen(backlog)
    except OSError as error:
        listening.close()
        raise OSError(error.errno, f"cannot listen on {address[0]}:{address[1]}: {error.strerror}") from error
    return listening
