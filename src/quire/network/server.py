"""The server: its listeners, the connections they accept, and its stop.

A server accepts connections on any number of listeners, refuses those beyond the limits, and on `stop` finishes the
requests in progress. The node creates one with its `handle`; the counters are for the node's metrics.
"""

import logging
from collections.abc import Callable

from quire.network.buffers import BufferPool
from quire.network.connection import Connection
from quire.network.handler import ConnectionInfo, Handle
from quire.network.limits import Counters, Limits
from quire.network.reclaim import Reclaim
from quire.network.turns import Turns
from quire.seams import Clock, Listener, Network, Timer, Transport
from quire.throttled_log import ThrottledLog

_log = logging.getLogger("quire.network")

_REFUSALS_LOGGED_EVERY_MS = 1000


class Server:
    def __init__(
        self,
        network: Network,
        clock: Clock,
        handle: Handle,
        limits: Limits | None = None,
        *,
        matters: Callable[[memoryview], bool] = lambda request: True,
        disconnected: Callable[[ConnectionInfo], None] | None = None,
    ) -> None:
        """`matters` says which requests of a disconnected client are still handled: those that change something.

        `disconnected` is called for each connection that has ended, after its last response.
        """
        self.clock = clock
        self.handle = handle
        self.matters = matters
        self.turns = Turns(clock)
        self.throttled_log = ThrottledLog(_log, clock)
        self.limits = limits if limits is not None else Limits()
        self.counters = Counters()
        self.pool = BufferPool(self.limits.request_memory_bytes_max)
        self._network = network
        self._disconnected = disconnected
        self._listeners: dict[str, Listener] = {}
        self._connections: dict[int, Connection] = {}
        self._connections_of: dict[str, int] = {}
        self._reclaim = Reclaim(clock, self.pool, self._connections.values)
        self._next_id = 0
        self._refusals_unlogged = 0
        self._refusals_logged_ms = float("-inf")
        self._stopped: Callable[[], None] | None = None
        self._deadline: Timer | None = None

    def listen(self, name: str, host: str, port: int) -> int:
        """Accepts connections at `host:port` (any free port for 0) and returns the port."""
        listener = self._network.listen(host, port, lambda transport: self._accept(name, transport))
        self._listeners[name] = listener
        return listener.port

    def stop(self, deadline_ms: float, stopped: Callable[[], None]) -> None:
        """Stops accepting, finishes the requests in progress, closes all connections, and then calls `stopped`.

        Connections that are still open after `deadline_ms` are aborted.
        """
        assert self._stopped is None, "the server is stopping already"
        self._stopped = stopped
        for listener in self._listeners.values():
            listener.close()
        self._listeners.clear()
        if not self._connections:
            stopped()
            return
        self._deadline = self.clock.call_later(deadline_ms, self._cut_off)
        for connection in list(self._connections.values()):
            connection.finish()

    def connection_closed(self, connection: Connection) -> None:
        info = connection.info
        del self._connections[info.connection_id]
        self.counters.connections -= 1
        self._connections_of[info.host] -= 1
        if not self._connections_of[info.host]:
            del self._connections_of[info.host]
        if self._disconnected is not None:
            try:
                self._disconnected(info)
            except Exception:
                self.throttled_log.exception("the node failed to handle the end of the connection from %s", info.peer)
        if self._stopped is not None and not self._connections:
            if self._deadline is not None:
                self._deadline.cancel()
            # Not within the call that ended the connection: that may come from a part that is stopped next.
            self.clock.call_soon(self._stopped)

    def memory_is_short(self) -> None:
        self._reclaim.wake()

    def queues_are_full(self) -> None:
        """Closes the connections with the longest queues until an eighth of the limit is free.

        Checking all connections takes long, and must not happen for each response while clients that do not read keep
        the queues full.
        """
        queues = {connection: connection.count_queued() for connection in self._connections.values()}
        if self.counters.queued_bytes <= self.limits.queued_bytes_max:
            return
        enough = self.limits.queued_bytes_max * 7 // 8
        for connection in sorted(queues, key=queues.__getitem__, reverse=True):
            if self.counters.queued_bytes <= enough:
                break
            connection.drop_queue()

    def _accept(self, listener: str, transport: Transport) -> Connection | None:
        info = ConnectionInfo(self._next_id, listener, transport.peer)
        reason = self._refusal(info.host)
        if reason is not None:
            self._refuse(info, reason)
            return None
        self._next_id += 1
        connection = Connection(self, info, transport)
        self._connections[info.connection_id] = connection
        self._connections_of[info.host] = self._connections_of.get(info.host, 0) + 1
        self.counters.connections += 1
        self.counters.connections_total += 1
        return connection

    def _refusal(self, host: str) -> str | None:
        limits = self.limits
        if self._stopped is not None:
            return "the server is stopping"
        if self.counters.connections >= limits.connections_max:
            return f"there are already {limits.connections_max} connections (max.connections)"
        per_ip_max = limits.connections_per_ip_overrides.get(host, limits.connections_per_ip_max)
        if self._connections_of.get(host, 0) >= per_ip_max:
            return f"that address already has {per_ip_max} connections (max.connections.per.ip)"
        return None

    def _refuse(self, info: ConnectionInfo, reason: str) -> None:
        """Logs at most one line a second, because refused clients retry at once."""
        self.counters.refused_total += 1
        self._refusals_unlogged += 1
        now = self.clock.monotonic_ms()
        if now - self._refusals_logged_ms >= _REFUSALS_LOGGED_EVERY_MS:
            count, self._refusals_unlogged = self._refusals_unlogged, 0
            self._refusals_logged_ms = now
            _log.warning("refused %d connections, the last from %s: %s", count, info.peer, reason)

    def _cut_off(self) -> None:
        _log.warning("aborting %d connections that did not finish in time", len(self._connections))
        for connection in list(self._connections.values()):
            connection.abort()
