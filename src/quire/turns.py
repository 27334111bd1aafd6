"""Runs many small pieces of work on the event loop, a few of them per turn, so that requests are served in between."""

from collections import deque
from collections.abc import Callable

from quire.seams import Clock


class Turns:
    __slots__ = ("_clock", "_longest_ms", "_per_turn", "_pieces", "_scheduled")

    def __init__(self, clock: Clock, per_turn: int, longest_ms: float = float("inf")) -> None:
        """A turn runs at most `per_turn` pieces, and begins none after `longest_ms`."""
        self._clock = clock
        self._per_turn = per_turn
        self._longest_ms = longest_ms
        self._pieces: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def __len__(self) -> int:
        return len(self._pieces)

    def add(self, piece: Callable[[], None]) -> None:
        """Runs `piece` after those that were added before it, never from within this call."""
        self._pieces.append(piece)
        self._schedule()

    def _schedule(self) -> None:
        if self._pieces and not self._scheduled:
            self._scheduled = True
            self._clock.call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        until_ms = self._clock.monotonic_ms() + self._longest_ms
        try:
            for _ in range(min(self._per_turn, len(self._pieces))):
                self._pieces.popleft()()
                if self._clock.monotonic_ms() >= until_ms:
                    break
        finally:
            # If a piece fails, the ones after it still run.
            self._schedule()
