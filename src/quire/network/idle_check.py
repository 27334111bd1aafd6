"""Closes a connection on which nothing has happened for `connections.max.idle.ms`.

The check runs four times in that period. A request only sets `Connection.active`, and does not have to read the clock.
"""

import logging
from typing import TYPE_CHECKING

from quire.network.connection_owner import ConnectionOwner
from quire.seams import Timer

if TYPE_CHECKING:
    from quire.network.connection import Connection

_log = logging.getLogger("quire.network")

_CHECKS_PER_PERIOD = 4
_NO_LIMIT_CHECK_MS = 60_000
"""How often a connection without a limit on its idle time checks whether it has one now."""


class IdleCheck:
    __slots__ = ("_connection", "_idle_since_ms", "_owner", "_timer")

    def __init__(self, connection: "Connection", owner: ConnectionOwner) -> None:
        self._connection: Connection | None = connection
        self._owner = owner
        self._idle_since_ms = 0.0
        self._timer: Timer = owner.clock.call_later(0, self._check)

    def cancel(self) -> None:
        self._timer.cancel()
        # Ends the cycle of references: a closed connection is freed at once, not by the garbage collector.
        self._connection = None

    def _check(self) -> None:
        connection = self._connection
        assert connection is not None
        now_ms = self._owner.clock.monotonic_ms()
        if connection.was_active():
            self._idle_since_ms = now_ms
        # Give back memory that was reserved for bytes that did not come.
        connection.frames.shrink()
        idle_ms_max = self._owner.limits.idle_ms_max
        if idle_ms_max < 0 or now_ms - self._idle_since_ms < idle_ms_max:
            next_ms = idle_ms_max / _CHECKS_PER_PERIOD if idle_ms_max >= 0 else _NO_LIMIT_CHECK_MS
            self._timer = self._owner.clock.call_later(max(next_ms, 1), self._check)
            return
        log = self._owner.throttled_log.warning if connection.owes_bytes else _log.debug
        log("closing the connection from %s: idle for %d ms", connection.info.peer, idle_ms_max)
        connection.abort()
