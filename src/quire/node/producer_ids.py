"""Assigns producer ids to this broker's clients, from blocks that the controller allocates.

The rest of a block is lost in a crash: ids are unique, but have gaps.
"""

from collections.abc import Callable

from quire.pending import Pending

AllocateBlock = Callable[[], Pending[tuple[int, int]]]
"""Asks the controller for a block: its first id and the number of ids, which is 0 if there is none now."""

NO_ID = -1
"""The result if no id is available now. The client retries."""


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
        served, self._waiting = self._waiting[:count], self._waiting[count:]
        # All of this comes first: a client that gets an id may ask for the next one within `complete`.
        self._next, self._end = first + len(served), first + count
        if self._waiting:
            self._allocate().when_done(self._allocated)
        for producer_id, pending in enumerate(served, first):
            pending.complete(producer_id)
