"""Who is served next when connections have sent more requests than one.

A connection that sends one request at a time is served when it comes. All others share one time slice per round of the
event loop: when it is used up, the rest of their requests wait here, first come first served, and the loop looks at its
sockets before the next slice. So a client with a single request waits for one slice at most, however many connections
with however many requests there are.

Connections whose client has gone have a slice of their own, a smaller one. No client waits for the answers, and nothing
was promised to them, so at most `GONE_MAX` of them wait; the requests of any beyond that are dropped.
"""

from collections import deque
from typing import Protocol

from quire.seams import Clock

SLICE_MS = 5.0
_GONE_SLICE_MS = 1.0
GONE_MAX = 1000


class Waiting(Protocol):
    def take_turn(self) -> None:
        """Handles some requests, and asks for another turn if there are more."""
        ...

    def take_turn_of_gone(self) -> None:
        """The same, for a client that has gone."""
        ...


class Turns:
    __slots__ = ("_clock", "_gone", "_living", "_open", "_until_ms")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._living: deque[Waiting] = deque()
        self._gone: deque[Waiting] = deque()
        self._open = False
        """A slice was begun in this round of the loop, or a round is to come."""
        self._until_ms = 0.0

    def slice_end_ms(self, now_ms: float) -> float:
        """When the slice of this round of the loop is used up; begins one if there is none."""
        if not self._open:
            self._until_ms = now_ms + SLICE_MS
            self._next_round()
        return self._until_ms

    def wait(self, connection: Waiting) -> None:
        self._living.append(connection)
        self._next_round()

    def wait_gone(self, connection: Waiting) -> bool:
        """False if too many wait already."""
        if len(self._gone) >= GONE_MAX:
            return False
        self._gone.append(connection)
        self._next_round()
        return True

    def _next_round(self) -> None:
        if not self._open:
            self._open = True
            self._clock.call_soon(self._round)

    def _round(self) -> None:
        try:
            self._begin_slice(SLICE_MS)
            for _ in range(len(self._living)):
                self._living.popleft().take_turn()
                if self._slice_is_over():
                    break
            self._begin_slice(_GONE_SLICE_MS)
            for _ in range(len(self._gone)):
                self._gone.popleft().take_turn_of_gone()
                if self._slice_is_over():
                    break
        finally:
            self._open = False
            if self._living or self._gone:
                self._next_round()

    def _begin_slice(self, slice_ms: float) -> None:
        self._until_ms = self._clock.monotonic_ms() + slice_ms

    def _slice_is_over(self) -> bool:
        return self._clock.monotonic_ms() >= self._until_ms
