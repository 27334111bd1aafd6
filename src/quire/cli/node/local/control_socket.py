"""The socket through which commands reach the supervisor of a local cluster: `quire-cluster.sock` in its folder.

Only the user who runs the cluster may connect, and nobody from another machine can. Each line is a request; the answers
are lines of JSON:

    nodes          {"nodes": [{"id": 1, "address": "127.0.0.1:9092", "pid": 4711}, ...]}
    restart 2      {"stopped": 2}, and then {"serving": 2, "address": "127.0.0.1:9102"}

Either answers {"error": "a sentence"} instead if it cannot. A restart continues if its connection closes.
"""

import json
import os
import selectors
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from quire.client.shell_loop import BlockingLoop

FILE_NAME = "quire-cluster.sock"
_CONNECTIONS = 16
_REQUEST_BYTES = 256
_PATH_BYTES = 100
"""The system allows 104 to 108 bytes for the path of a socket."""

Answer = dict[str, object]
Reply = Callable[[Answer], None]
Execute = Callable[[str, Reply], None]


@contextmanager
def short_path(folder: str) -> Iterator[str]:
    """The path of the socket; where it is too long for the system, one through a descriptor of the folder (Linux)."""
    path = os.path.join(folder, FILE_NAME)
    if len(os.fsencode(path)) <= _PATH_BYTES:
        yield path
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{FILE_NAME}"
    finally:
        os.close(descriptor)


class ControlSocket:
    """The supervisor's side. `execute` gets each request and a function that answers it, more than once if it likes."""

    def __init__(self, loop: BlockingLoop, folder: str, execute: Execute) -> None:
        """OSError if the folder cannot have a socket."""
        self._loop = loop
        self._execute = execute
        self._path = os.path.join(folder, FILE_NAME)
        self._connections: dict[socket.socket, bytes] = {}
        with suppress(FileNotFoundError):
            os.unlink(self._path)  # of a supervisor that was killed: the folder's nodes can run only once
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            with short_path(folder) as path:
                self._listening.bind(path)
        except OSError:
            self._listening.close()
            raise
        finally:
            os.umask(before)
        self._listening.listen(_CONNECTIONS)
        self._listening.setblocking(False)
        loop.watch(self._listening, selectors.EVENT_READ, lambda _: self._accept())

    @property
    def connections(self) -> int:
        return len(self._connections)

    def close(self) -> None:
        for connection in list(self._connections):
            self._end(connection)
        self._loop.watch(self._listening, 0, lambda _: None)
        self._listening.close()
        with suppress(FileNotFoundError):
            os.unlink(self._path)

    def forget(self) -> None:
        """In a forked node, which must not hold the connections open."""
        for connection in self._connections:
            connection.close()
        self._listening.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError:
            return
        if len(self._connections) >= _CONNECTIONS:
            connection.close()
            return
        connection.setblocking(False)
        self._connections[connection] = b""
        self._loop.watch(connection, selectors.EVENT_READ, lambda _: self._readable(connection))

    def _readable(self, connection: socket.socket) -> None:
        try:
            chunk = connection.recv(_REQUEST_BYTES)
        except OSError:
            chunk = b""
        *lines, rest = (self._connections[connection] + chunk).split(b"\n")
        if not chunk or len(rest) > _REQUEST_BYTES:
            self._end(connection)
            return
        self._connections[connection] = rest
        for line in lines:
            self._execute(line.decode(errors="replace"), lambda answer: self._send(connection, answer))

    def _send(self, connection: socket.socket, answer: Answer) -> None:
        """A client that has gone, or does not read, gets no more answers."""
        if connection in self._connections:
            try:
                connection.sendall(json.dumps(answer).encode() + b"\n")
            except OSError:
                self._end(connection)

    def _end(self, connection: socket.socket) -> None:
        if self._connections.pop(connection, None) is not None:
            self._loop.watch(connection, 0, lambda _: None)
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
