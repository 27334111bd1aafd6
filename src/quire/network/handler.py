"""The interface between the server and the handler of its requests."""

from collections.abc import Callable
from typing import Any

from quire.pending import Pending
from quire.seams import Part


class CloseConnection(Exception):  # noqa: N818
    """Raised by a handler to close the connection without a response; the text is logged as the reason."""


class ConnectionInfo:
    """What a handler knows about the connection of a request. There is one per connection."""

    __slots__ = ("connection_id", "host", "listener", "peer", "state")

    def __init__(self, connection_id: int, listener: str, peer: str, state: Any = None) -> None:
        self.connection_id = connection_id
        self.listener = listener
        self.peer = peer
        """`host:port` of the client."""
        self.host = peer.rpartition(":")[0]
        self.state = state
        """What the node keeps per connection, such as the principal and the client's software."""

    def __repr__(self) -> str:
        return f"ConnectionInfo({self.connection_id}, {self.listener!r}, {self.peer!r})"


EncodedResponse = list[Part] | CloseConnection | None
"""The parts of a response with its length in front; None if the request has no response (acks=0)."""
Handle = Callable[[ConnectionInfo, memoryview], EncodedResponse | Pending[EncodedResponse]]
"""Handles one request. The view of the request is valid until this returns.

To close the connection, a handler raises CloseConnection, or completes its `Pending` with it."""
