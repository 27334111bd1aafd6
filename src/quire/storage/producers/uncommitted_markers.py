"""Transaction markers at or above the high watermark, which still hold the last stable offset back.

For the producer state a transaction ends when its marker is in the log. For readers it ends when the marker is
committed: a failover may lose the marker, and the transaction would be open again. Until then the last stable offset
stays where the transaction began. This follows from the log and the high watermark, not from a role: a new leader must
not show a transaction that an uncommitted marker of the previous one ended. So the log itself keeps it up to date: when
it is opened, for every append, as leader or follower, and when it is truncated.
"""

from collections import deque
from collections.abc import Iterable

from quire.storage.producers.producer_replay import MarkedEnd


class UncommittedMarkers:
    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[MarkedEnd] = ()) -> None:
        self.entries = deque(entries)
        """By rising offset of the marker: that offset, and the first offset of the transaction that it ends."""

    def appended(self, marker_offset: int, first_offset: int) -> None:
        self.entries.append((marker_offset, first_offset))

    def truncated(self, end_offset: int) -> None:
        while self.entries and self.entries[-1][0] >= end_offset:
            self.entries.pop()

    def clear(self) -> None:
        self.entries.clear()

    def hold_back(self, high_watermark: int) -> int | None:
        """The first offset of the earliest transaction whose marker is not committed; None if there is none.

        What is committed is forgotten. So this must be called when the high watermark moves, which bounds the memory.
        """
        entries = self.entries
        while entries and entries[0][0] < high_watermark:
            entries.popleft()
        return min(first_offset for _, first_offset in entries) if entries else None
