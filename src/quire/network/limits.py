"""The limits of a server for its clients, and its counters."""

from dataclasses import dataclass, field

_NO_LIMIT = 2**31 - 1


@dataclass(slots=True)
class Limits:
    """They are read at each use (the first: once per connection), so a change needs no restart.

    The first five are Kafka's: socket.request.max.bytes, connections.max.idle.ms, max.connections,
    max.connections.per.ip and its overrides.
    """

    request_bytes_max: int = 100 * 1024 * 1024
    idle_ms_max: int = 600_000
    """Negative: no limit."""
    connections_max: int = _NO_LIMIT
    connections_per_ip_max: int = _NO_LIMIT
    connections_per_ip_overrides: dict[str, int] = field(default_factory=dict)
    queued_bytes_pause: int = 256 * 1024
    """If more than this is queued for a client, its requests are not read until it has read everything."""
    queued_bytes_max: int = 256 * 1024 * 1024
    """Memory queued for all slow clients together; beyond it, the connections with the longest queues are closed."""
    request_memory_bytes_max: int = 256 * 1024 * 1024
    """Memory for large incoming requests of all clients together; a connection that needs more waits.

    The last quarter is for requests of up to a megabyte. There is an eighth more for clients that have sent such
    requests before."""


@dataclass(slots=True)
class Counters:
    connections: int = 0
    """Currently open."""
    connections_total: int = 0
    refused_total: int = 0
    requests: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    queued_bytes: int = 0
    """Memory currently queued for slow clients."""
