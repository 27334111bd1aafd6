"""The parts of a segment that have been checked: intact ranges of whole batches, and damaged batches between them.

`quire.storage.scanning.range_check` fills it, and every read of a segment that may be damaged consults it.
"""

from bisect import bisect_right

from quire.storage.scanning.batch_scan import DamagedBatchError


class CheckedRanges:
    __slots__ = ("_damages", "_ends", "_lost", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._damages: dict[int, DamagedBatchError] = {}
        self._lost: dict[int, tuple[int, DamagedBatchError]] = {}

    def intact_from(self, position: int, offset: int) -> int:
        """The end of the intact range that contains `position`; `position` itself if there is none.

        DamagedBatchError if a damaged batch begins there, or if a damaged batch before it may contain `offset`.
        """
        if position in self._damages:
            raise self._damages[position]
        if position in self._lost and offset < self._lost[position][0]:
            raise self._lost[position][1]
        slot = bisect_right(self._starts, position) - 1
        return max(self._ends[slot], position) if slot >= 0 else position

    def add(self, start: int, end: int) -> None:
        if start >= end:
            return
        first = bisect_right(self._ends, start - 1)
        last = bisect_right(self._starts, end)
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def damaged(self, damage: DamagedBatchError) -> bool:
        """Adds a damaged batch; returns whether it was not known before."""
        known = damage.position in self._damages
        self._damages[damage.position] = damage
        return not known

    def is_damaged(self, position: int) -> bool:
        return position in self._damages

    def lost_before(self, position: int, offset: int, damage: DamagedBatchError) -> None:
        """Offsets below `offset`, with which the batch at `position` begins, may be in a damaged batch before it."""
        self._lost[position] = offset, damage

    def cover(self, end: int) -> bool:
        return not self._damages and self._starts[:1] == [0] and self._ends[0] >= end

    def truncate_to(self, size: int) -> None:
        kept = bisect_right(self._starts, size - 1)
        del self._starts[kept:], self._ends[kept:]
        self._ends = [min(end, size) for end in self._ends]
        self._damages = {position: damage for position, damage in self._damages.items() if position < size}
        self._lost = {position: lost for position, lost in self._lost.items() if position < size}
