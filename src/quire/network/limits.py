"""How much clients may ask of a server, and what they have asked so far."""

from dataclasses import dataclass, field

_NO_LIMIT = 2**31 - 1


@dataclass(slots=True)
class Limits:
    """Read anew each time they matter (the first: once per connection), so a change needs no restart.

    The first five are Kafka's: socket.request.max.bytes, connections.max.idle.ms, max.connections,
    max.connections.per.ip and its overrides.
    """

    request_bytes_max: int = 100 * 1024 * 1024
    idle_ms_max: int = 600_000
    """Negative for never."""
    connections_max: int = _NO_LIMIT
    connections_per_ip_max: int = _NO_LIMIT
    connections_per_ip_overrides: dict[str, int] = field(default_factory=dict)
    queued_bytes_pause: int = 256 * 1024
    """A client with more than this to take is not read until it has taken everything."""
    queued_bytes_max: int = 256 * 1024 * 1024
    """Memory queued for all slow clients together; beyond it, those with the longest queues are closed."""
    request_memory_bytes_max: int = 256 * 1024 * 1024
    """Memory for large requests being received, of all clients together; who needs more waits.

    The last quarter is for requests of up to a megabyte. For clients that have sent such requests before, there is an
    eighth more."""


@dataclass(slots=True)
class Counters:
    connections: int = 0
    """Open now."""
    connections_total: int = 0
    refused_total: int = 0
    requests: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    queued_bytes: int = 0
    """Memory queued for slow clients now."""
