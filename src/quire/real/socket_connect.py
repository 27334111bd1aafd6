"""Opens an outgoing connection: resolves the name, and tries its addresses in turn until a time-out.

A name is resolved in a job unless it is an address. Exactly one of `connected` and `failed` is called, once, and never
from within `start`.
"""

import errno
import logging
import os
import socket
from collections.abc import Callable
from typing import Any

from quire.real.socket_transport import Shared, SocketTransport, prepare
from quire.seams import Clock, Receiver, Timer, Transport

_log = logging.getLogger("quire.sockets")

_Address = tuple[Any, ...]


class Connect:
    def __init__(
        self,
        shared: Shared,
        clock: Clock,
        host: str,
        port: int,
        connected: Callable[[Transport], Receiver],
        failed: Callable[[Exception], None],
        timeout_ms: float,
    ) -> None:
        self._shared = shared
        self._host = host
        self._port = port
        self._connected = connected
        self._failed = failed
        self._timeout: Timer = clock.call_later(timeout_ms, self._timed_out)
        self._addresses: list[tuple[int, _Address]] = []
        self._failure: Exception = OSError(f"{host} has no address")
        self._socket: socket.socket | None = None
        self._over = False

    def start(self) -> None:
        try:
            found = self._look_up(socket.AI_NUMERICHOST)
        except OSError:
            self._shared.jobs.submit(self._look_up, self._looked_up, self._give_up)
        else:
            self._shared.loop.call_soon(self._looked_up, found)

    def _look_up(self, flags: int = 0) -> list[tuple[int, _Address]]:
        found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM, flags=flags)
        return [(family, address) for family, _, _, _, address in found]

    def _looked_up(self, addresses: list[tuple[int, _Address]]) -> None:
        self._addresses = addresses
        self._try_next()

    def _try_next(self) -> None:
        if self._over:
            return
        if not self._addresses:
            self._give_up(self._failure)
            return
        family, address = self._addresses.pop(0)
        try:
            connection = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            self._address_failed(error.errno or errno.EIO)
            return
        try:
            prepare(connection)
            code = connection.connect_ex(address)
        except OSError as error:
            code = error.errno or errno.EIO
        if code in (0, errno.EINPROGRESS):
            self._socket = connection
            self._shared.loop.add_writer(connection.fileno(), self._decided)
        else:
            connection.close()
            self._address_failed(code)

    def _decided(self) -> None:
        connection = self._take_socket()
        assert connection is not None
        code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            connection.close()
            self._address_failed(code)
            return
        self._over = True
        self._timeout.cancel()
        transport = SocketTransport(self._shared, connection, f"{self._host}:{self._port}")
        try:
            transport.begin(self._connected(transport))
        except Exception:
            _log.exception("closing the connection to %s: its owner failed", transport.peer)
            transport.abort()

    def _address_failed(self, code: int) -> None:
        self._failure = OSError(code, f"cannot connect to {self._host}:{self._port}: {os.strerror(code)}")
        self._try_next()

    def _timed_out(self) -> None:
        self._give_up(TimeoutError(errno.ETIMEDOUT, f"cannot connect to {self._host}:{self._port}: no answer in time"))

    def _give_up(self, error: Exception) -> None:
        if self._over:
            return
        self._over = True
        self._timeout.cancel()
        connection = self._take_socket()
        if connection is not None:
            connection.close()
        self._failed(error)

    def _take_socket(self) -> socket.socket | None:
        connection, self._socket = self._socket, None
        if connection is not None:
            self._shared.loop.remove_writer(connection.fileno())
        return connection
