"""Runs long computations in turns of some milliseconds. The event loop serves other requests between them.

A computation is a generator that yields when its `Pace` says that the turn is over. Work is counted and not timed, so
that the same input always takes the same turns.
"""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

Turns = Generator[None, None, T]

WORK_PER_TURN = 16_000
"""Partitions, members and topics, about a microsecond each."""


class Pace:
    __slots__ = ("_done",)

    def __init__(self) -> None:
        self._done = 0

    def is_turn_over(self, work: int) -> bool:
        """Adds `work`. Starts the next turn if it returns True."""
        self._done += work
        if self._done < WORK_PER_TURN:
            return False
        self._done = 0
        return True


def finish(turns: Turns[T]) -> T:
    """Runs all turns without a pause."""
    while True:
        try:
            next(turns)
        except StopIteration as end:
            result: T = end.value
            return result
