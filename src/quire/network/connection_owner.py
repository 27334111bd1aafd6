"""What a connection needs of its server. `Server` implements it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from quire.network.buffers import BufferPool
from quire.network.handler import Handle
from quire.network.limits import Counters, Limits
from quire.network.turns import Turns
from quire.seams import Clock
from quire.throttled_log import ThrottledLog

if TYPE_CHECKING:
    from quire.network.connection import Connection


class ConnectionOwner(Protocol):
    limits: Limits
    counters: Counters
    clock: Clock
    throttled_log: ThrottledLog
    pool: BufferPool
    turns: Turns
    handle: Handle
    matters: Callable[[memoryview], bool]
    """Whether a request is handled although its client has disconnected."""

    def connection_closed(self, connection: "Connection") -> None: ...

    def memory_is_short(self) -> None:
        """A connection waits for memory."""
        ...

    def queues_are_full(self) -> None:
        """More than `queued_bytes_max` is queued for clients that do not read fast enough."""
        ...
