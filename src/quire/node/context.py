"""What a handler knows about the sender of a request."""

from dataclasses import dataclass
from typing import NamedTuple


class Principal(NamedTuple):
    """Kafka's `Type:name`. On a listener without authentication every client is ANONYMOUS."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")

CLUSTER = Principal("Quire", "cluster")
"""The principal of requests that nodes send to themselves. No listener gives it to a client."""


NO_CONNECTION = -1
"""Of requests that came in an Envelope, or from the node itself."""


@dataclass(slots=True)
class Context:
    """The sender and version of one request. A connection reuses it while the client id stays the same."""

    listener: str
    principal: Principal
    client_id: str
    client_address: str
    api_version: int = 0
    connection_id: int = NO_CONNECTION
    """Unique among the connections of this node."""
