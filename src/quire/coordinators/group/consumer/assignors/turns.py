"""Long computations in turns: each takes some milliseconds, and the event loop serves others between them.

A computation is a generator that yields whenever its `Pace` says that a turn's worth of work is done. Work is counted
and not timed, so that the same question always takes the same turns.
"""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

Turns = Generator[None, None, T]

WORK_PER_TURN = 16_000
"""In partitions, members and topics looked at, each of which takes about a microsecond."""


class Pace:
    __slots__ = ("_done",)

    def __init__(self) -> None:
        self._done = 0

    def is_turn_over(self, work: int) -> bool:
        """After so much more work; the next turn starts from nothing."""
        self._done += work
        if self._done < WORK_PER_TURN:
            return False
        self._done = 0
        return True


def finish(turns: Turns[T]) -> T:
    """All turns at once."""
    while True:
        try:
            next(turns)
        except StopIteration as end:
            result: T = end.value
            return result
