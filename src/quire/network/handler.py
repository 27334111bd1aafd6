"""What the server and the one who answers its requests have to do with each other."""

from collections.abc import Callable
from typing import Any

from quire.pending import Pending
from quire.seams import Part


class CloseConnection(Exception):  # noqa: N818
    """Raised by a handler when the only answer is to close; the text is logged as the reason."""


class ConnectionInfo:
    """What a handler may know about where a request came from. One per connection."""

    __slots__ = ("connection_id", "host", "listener", "peer", "state")

    def __init__(self, connection_id: int, listener: str, peer: str, state: Any = None) -> None:
        self.connection_id = connection_id
        self.listener = listener
        self.peer = peer
        """`host:port` of the client."""
        self.host = peer.rpartition(":")[0]
        self.state = state
        """The node's own: principal, client software, whatever it keeps per connection."""

    def __repr__(self) -> str:
        return f"ConnectionInfo({self.connection_id}, {self.listener!r}, {self.peer!r})"


Answer = list[Part] | CloseConnection | None
Handle = Callable[[ConnectionInfo, memoryview], Answer | Pending[Answer]]
"""Answers one request. The parts are the whole answer, its length in front. The view is valid until this returns.

A handler that finds out at once that it must close raises CloseConnection; one that finds out later answers with it."""
