"""Reclaims memory from requests that arrive too slowly, while other connections wait for it.

A client may hold the memory of a large request as long as no other client needs it. When one does, the holder has to
send at a minimum rate: the whole buffer must fill within five seconds, pro rata, after half a second of grace. The
holders with the largest debt, in bytes times time, are closed until no connection waits. So clients that send almost
nothing lose their memory at once, and an attacker that wants to hold all of it must send as much as honest clients do.

The server has one instance. It runs while connections wait for memory.
"""

from collections.abc import Callable, Iterable

from quire.network.buffers import BufferPool
from quire.network.connection import Connection
from quire.network.framing import FrameReader
from quire.seams import Clock

GRACE_MS = 500
"""A round trip or two, or one lost packet."""
FILL_MS = 5_000
"""Well below the 30 seconds after which clients time out."""
_LOOK_AGAIN_MS = 100


class Reclaim:
    def __init__(self, clock: Clock, pool: BufferPool, connections: Callable[[], Iterable[Connection]]) -> None:
        self._clock = clock
        self._pool = pool
        self._connections = connections
        self._awake = False

    def wake(self) -> None:
        if not self._awake:
            self._awake = True
            # Not within the call of the connection that waits: freed memory would call back into it.
            self._clock.call_soon(self._check)

    def _check(self) -> None:
        now_ms = self._clock.monotonic_ms()
        # Connections that wait for memory themselves are not read, so they cannot send faster.
        holders = [each for each in self._connections() if each.frames.large_bytes and not each.starved]
        debts = {holder: _debt(holder.frames, now_ms) for holder in holders}
        for holder in sorted(holders, key=debts.__getitem__, reverse=True):
            if debts[holder] <= 0 or not self._pool.is_short:
                break
            if holder.frames.incomplete:
                holder.abandon_request()
            else:
                # The buffer is empty: nothing has come since it was allocated.
                holder.frames.release()
        if self._pool.is_short:
            self._clock.call_later(_LOOK_AGAIN_MS, self._check)
        else:
            self._awake = False


def _debt(frames: FrameReader, now_ms: float) -> float:
    """Bytes times milliseconds for which a client has held memory beyond what it has paid for by sending."""
    held = frames.large_bytes
    paid_ms = GRACE_MS + FILL_MS * frames.unread_bytes / held
    return (now_ms - frames.held_since_ms - paid_ms) * held
