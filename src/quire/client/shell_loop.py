"""A small event loop on `selectors` that runs only while somebody waits for something.

It is a Clock and a Network in the sense of the seams, which is all the client's logic needs. No asyncio to import, and
Ctrl-C arrives as KeyboardInterrupt wherever the caller waits.
"""

import heapq
import itertools
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from quire.client.errors import TimedOutError
from quire.client.shell_socket import Attempt
from quire.pending import Pending
from quire.seams import Listener, Receiver, Timer, Transport

T = TypeVar("T")


class _Timer:
    __slots__ = ("callback", "due_ms", "sequence")

    def __init__(self, due_ms: float, sequence: int, callback: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self.sequence = sequence
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None

    def __lt__(self, other: "_Timer") -> bool:
        return (self.due_ms, self.sequence) < (other.due_ms, other.sequence)


class BlockingLoop:
    """Clock and Network at once; `run_until` is where time passes."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._soon: deque[Callable[[], None]] = deque()
        self._timers: list[_Timer] = []
        self._sequence = itertools.count()
        self._sweep_at = 1024

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        timer = _Timer(self.monotonic_ms() + delay_ms, next(self._sequence), callback)
        heapq.heappush(self._timers, timer)
        if len(self._timers) > self._sweep_at:
            self._timers = [waiting for waiting in self._timers if waiting.callback is not None]
            heapq.heapify(self._timers)
            self._sweep_at = max(1024, 2 * len(self._timers))
        return timer

    def listen(self, host: str, port: int, accept: Callable[[Transport], Receiver | None]) -> Listener:
        raise NotImplementedError("a client does not listen")

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
        """Waits up to `wait_ms` for something to happen, and lets it happen."""
        if self._soon:
            wait_ms = 0
        elif self._timers:
            wait_ms = min(wait_ms, max(0.0, self._timers[0].due_ms - self.monotonic_ms()))
        for key, events in self._selector.select(wait_ms / 1000):
            key.data(events)
        now_ms = self.monotonic_ms()
        while self._timers and self._timers[0].due_ms <= now_ms:
            callback = heapq.heappop(self._timers).callback
            if callback is not None:
                callback()
        for _ in range(len(self._soon)):
            self._soon.popleft()()

    def run_until(self, pending: Pending[T], timeout_ms: float | None = None) -> T:
        """Lets things happen until the result is there."""
        deadline_ms = None if timeout_ms is None else self.monotonic_ms() + timeout_ms
        while not pending.done:
            left_ms = 60_000.0 if deadline_ms is None else deadline_ms - self.monotonic_ms()
            if left_ms <= 0:
                raise TimedOutError(f"there was no answer within {(timeout_ms or 0) / 1000:g} s")
            self.run_once(left_ms)
        return pending.value

    def watch(self, connection: socket.socket | int, events: int, callback: Callable[[int], None]) -> None:
        """Calls back when the socket is ready for `events`, which replace those watched before; none ends it."""
        known = connection in self._selector.get_map()
        if known and events:
            self._selector.modify(connection, events, callback)
        elif events:
            self._selector.register(connection, events, callback)
        elif known:
            self._selector.unregister(connection)

    def close(self) -> None:
        self._selector.close()
