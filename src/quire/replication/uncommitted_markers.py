"""Transaction markers at or behind the high watermark, which still hold the last stable offset back.

For `quire.storage` a transaction ends when its marker is in the log. For readers it ends when the marker is committed:
a failover may lose the marker, and the transaction would be open again. Until then the last stable offset stays where
the transaction began. This state follows from the log and the high watermark, not from a role: the markers of a deposed
leader count until they are committed or truncated, also under the next leadership.
"""

from collections import deque


class UncommittedMarkers:
    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: deque[tuple[int, int]] = deque()
        """By rising offset of the marker: that offset, and the first offset of the transaction that it ends."""

    def appended(self, marker_offset: int, first_offset: int) -> None:
        self.entries.append((marker_offset, first_offset))

    def committed(self, high_watermark: int) -> None:
        while self.entries and self.entries[0][0] < high_watermark:
            self.entries.popleft()

    def truncated(self, end_offset: int) -> None:
        while self.entries and self.entries[-1][0] >= end_offset:
            self.entries.pop()

    def first_offset(self) -> int:
        """Where the earliest of these transactions begins; only if there are entries."""
        return min(first_offset for _, first_offset in self.entries)
