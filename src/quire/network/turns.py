"""Which connection is served next when connections have sent several requests.

A request of a connection that sends one at a time is handled on arrival. All other connections share one time slice per
round of the event loop. When it is used up, the rest of their requests wait here, first come first served, and the loop
polls its sockets before the next slice. So a client with a single request waits for one slice at most, regardless of
how many connections and requests there are.

Connections of disconnected clients share a smaller slice of their own. No client waits for the responses, so at most
`DISCONNECTED_MAX` of these connections wait; the requests of all others are dropped.
"""

from collections import deque
from typing import Protocol

from quire.seams import Clock

SLICE_MS = 5.0
_DISCONNECTED_SLICE_MS = 1.0
DISCONNECTED_MAX = 1000


class Waiting(Protocol):
    def take_turn(self) -> None:
        """Handles some requests, and calls `wait` again if there are more."""
        ...

    def take_turn_disconnected(self) -> None:
        """The same, for a client that has disconnected."""
        ...


class Turns:
    __slots__ = ("_clock", "_connected", "_disconnected", "_open", "_until_ms")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._connected: deque[Waiting] = deque()
        self._disconnected: deque[Waiting] = deque()
        self._open = False
        """A slice was begun in this round of the loop, or `_round` is scheduled."""
        self._until_ms = 0.0

    def slice_end_ms(self, now_ms: float) -> float:
        """The end of the slice of this round of the loop; begins a slice if there is none."""
        if not self._open:
            self._until_ms = now_ms + SLICE_MS
            self._next_round()
        return self._until_ms

    def wait(self, connection: Waiting) -> None:
        self._connected.append(connection)
        self._next_round()

    def wait_disconnected(self, connection: Waiting) -> bool:
        """False if too many wait already."""
        if len(self._disconnected) >= DISCONNECTED_MAX:
            return False
        self._disconnected.append(connection)
        self._next_round()
        return True

    def _next_round(self) -> None:
        if not self._open:
            self._open = True
            self._clock.call_soon(self._round)

    def _round(self) -> None:
        try:
            self._begin_slice(SLICE_MS)
            for _ in range(len(self._connected)):
                self._connected.popleft().take_turn()
                if self._slice_is_over():
                    break
            self._begin_slice(_DISCONNECTED_SLICE_MS)
            for _ in range(len(self._disconnected)):
                self._disconnected.popleft().take_turn_disconnected()
                if self._slice_is_over():
                    break
        finally:
            self._open = False
            if self._connected or self._disconnected:
                self._next_round()

    def _begin_slice(self, slice_ms: float) -> None:
        self._until_ms = self._clock.monotonic_ms() + slice_ms

    def _slice_is_over(self) -> bool:
        return self._clock.monotonic_ms() >= self._until_ms
