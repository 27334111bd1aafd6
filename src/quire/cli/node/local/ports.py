"""Free ports that stay free until a node listens on them, and while it restarts."""

import socket
import sys
from types import TracebackType
from typing import Self


class ReservedPorts:
    """Keeps a socket bound to each port, without listening.

    On Linux another socket may bind and listen there by name (both have SO_REUSEADDR), but the system does not
    give the port to a process that asks for any free one. Elsewhere the port is likely, but not certain, to stay free.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def take(self, host: str = "127.0.0.1") -> int:
        """A port that is free on this address; `host` is empty for every interface."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, 0))
        self._held.append(bound)
        port: int = bound.getsockname()[1]
        return port

    def all_taken(self) -> None:
        """Elsewhere than on Linux nothing could listen on a port that is bound."""
        if not sys.platform.startswith("linux"):
            self.close()

    def close(self) -> None:
        held, self._held = self._held, []
        for bound in held:
            bound.close()
