"""Producer ids for this broker's clients, out of blocks that the controller hands out.

A block that is lost in a crash is simply never used: ids are unique, not dense.
"""

from collections.abc import Callable

from quire.pending import Pending

AllocateBlock = Callable[[], Pending[tuple[int, int]]]
"""Asks the controller for a block: its first id and how many there are; none when it cannot give any now."""

NO_ID = -1
"""In place of an id when there is none to be had now; the client tries again."""


class ProducerIds:
    __slots__ = ("_allocate", "_end", "_next", "_waiting")

    def __init__(self, allocate: AllocateBlock) -> None:
        self._allocate = allocate
        self._next = 0
        self._end = 0
        self._waiting: list[Pending[int]] = []

    def next_id(self) -> Pending[int]:
        pending: Pending[int] = Pending()
        if self._next < self._end:
            pending.complete(self._take())
            return pending
        self._waiting.append(pending)
        if len(self._waiting) == 1:
            self._allocate().when_done(self._allocated)
        return pending

    def _take(self) -> int:
        producer_id = self._next
        self._next += 1
        return producer_id

    def _allocated(self, block: tuple[int, int]) -> None:
        first, count = block
        if count == 0:
            refused, self._waiting = self._waiting, []
            for pending in refused:
                pending.complete(NO_ID)
            return
        self._next, self._end = first, first + count
        served, self._waiting = self._waiting[:count], self._waiting[count:]
        for pending in served:
            pending.complete(self._take())
        if self._waiting:
            self._allocate().when_done(self._allocated)
