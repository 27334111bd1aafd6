"""Who asks: what every handler knows about the request's sender."""

from dataclasses import dataclass
from typing import NamedTuple


class Principal(NamedTuple):
    """Kafka's `Type:name`; everybody is anonymous on a listener without authentication."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")

CLUSTER = Principal("Quire", "cluster")
"""The cluster itself: requests of a node's own parts. No listener lets anybody in under this name."""


@dataclass(slots=True)
class Context:
    """One request's circumstances. Kept per connection and reused while the client id stays the same."""

    listener: str
    principal: Principal
    client_id: str
    client_address: str
    api_version: int = 0
