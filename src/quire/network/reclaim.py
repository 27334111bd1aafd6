"""Takes memory back from requests that have stopped coming, while other connections wait for it.

A client may hold the memory of what it has sent of a large request for as long as nobody else needs it. When somebody
does, whoever sends next to nothing for ten seconds is closed, the largest holder first, until nobody waits. The server
has one; a connection that has to wait wakes it, and it sleeps when nobody waits any more.
"""

from collections.abc import Callable, Iterable

from quire.network.buffers import SMALL_BYTES, BufferPool
from quire.network.connection import Connection
from quire.seams import Clock

_PATIENCE_MS = 10_000
"""Less than the half minute after which clients give their requests up."""
_PROGRESS_BYTES = SMALL_BYTES
"""What a client must send in that time, so that a byte now and then does not count."""


class Reclaim:
    def __init__(self, clock: Clock, pool: BufferPool, connections: Callable[[], Iterable[Connection]]) -> None:
        self._clock = clock
        self._pool = pool
        self._connections = connections
        self._awake = False
        self._seen: dict[int, int] = {}
        """Who held memory and was read at the last look, by connection id, and the bytes it had sent until then."""

    def wake(self) -> None:
        if not self._awake:
            self._awake = True
            self._look()

    def _look(self) -> None:
        before = self._seen
        # Those that wait for memory themselves are not read, and so are not to blame.
        holders = [each for each in self._connections() if each.request_memory_bytes and not each.starved]
        self._seen = {holder.info.connection_id: holder.bytes_in for holder in holders}
        stalled = [
            holder
            for holder in holders
            if holder.bytes_in - before.get(holder.info.connection_id, -_PROGRESS_BYTES) < _PROGRESS_BYTES
        ]
        stalled.sort(key=lambda holder: holder.request_memory_bytes, reverse=True)
        for holder in stalled:
            if not self._pool.is_short:
                break
            holder.give_request_up()
        if self._pool.is_short:
            self._clock.call_later(_PATIENCE_MS, self._look)
        else:
            self._awake = False
            self._seen = {}
