"""A small event loop on `selectors` that runs only while the caller waits for a result.

It implements the Clock and Connector seams, which is all that the client's logic needs. It does not import asyncio, and
Ctrl-C raises KeyboardInterrupt wherever the caller waits.
"""

import selectors
import socket
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from quire.client.errors import TimedOutError
from quire.client.shell_socket import Attempt
from quire.pending import Pending
from quire.real.timers import Timers
from quire.seams import Receiver, Transport

T = TypeVar("T")


class BlockingLoop(Timers):
    """Clock and Connector at once. Callbacks run only within `run_once` and `run_until`."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = selectors.DefaultSelector()
        self._soon: deque[Callable[[], None]] = deque()

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def connect(
        self,
        host: str,
        port: int,
        connected: Callable[[Transport], Receiver],
        failed: Callable[[Exception], None],
    ) -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            reason = OSError(f"the name {host} does not resolve ({error.strerror})")
            self.call_soon(lambda: failed(reason))
            return
        Attempt(self, [(family, address) for family, _, _, _, address in found], connected, failed)

    def run_once(self, wait_ms: float) -> None:
        """Waits up to `wait_ms` for an event, then runs the callbacks of all events, due timers and `call_soon`."""
        if self._soon:
            wait_ms = 0
        elif self._timers:
            wait_ms = min(wait_ms, max(0.0, self._timers[0][0] - self.monotonic_ms()))
        for key, events in self._selector.select(wait_ms / 1000):
            key.data(events)
        self._run_due()
        for _ in range(len(self._soon)):
            self._soon.popleft()()

    def run_until(self, pending: Pending[T], timeout_ms: float | None = None) -> T:
        """Runs the loop until the result is available; TimedOutError if that takes longer than `timeout_ms`."""
        deadline_ms = None if timeout_ms is None else self.monotonic_ms() + timeout_ms
        while not pending.done:
            left_ms = 60_000.0 if deadline_ms is None else deadline_ms - self.monotonic_ms()
            if left_ms <= 0:
                raise TimedOutError(f"there was no response within {(timeout_ms or 0) / 1000:g} s")
            self.run_once(left_ms)
        return pending.value

    def watch(self, connection: socket.socket | int, events: int, callback: Callable[[int], None]) -> None:
        """Calls `callback` when the socket is ready for `events`, which replace the previous ones; 0 stops it."""
        known = connection in self._selector.get_map()
        if known and events:
            self._selector.modify(connection, events, callback)
        elif events:
            self._selector.register(connection, events, callback)
        elif known:
            self._selector.unregister(connection)

    def close(self) -> None:
        self._selector.close()
