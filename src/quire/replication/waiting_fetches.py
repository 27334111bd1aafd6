"""The fetches that wait for records of one partition, whether it leads or follows.

When the high watermark moves, the role tells the partition's owner (`PartitionOwner.high_watermark_advanced`), and the
owner calls `wake` in the next turn of the event loop, once for all that happened in this turn. When a role ends, every
waiting fetch is answered, because its client must learn of that.
"""

from typing import TYPE_CHECKING

from quire.protocol.errors import ApiError
from quire.replication.fetch_wait import FetchWait
from quire.storage import LogPosition

if TYPE_CHECKING:
    from quire.replication.partition import Partition


class WaitingFetches:
    __slots__ = ("_partition", "_reported_end", "_waits")

    def __init__(self, partition: "Partition") -> None:
        self._partition = partition
        self._waits: dict[FetchWait, None] = {}
        self._reported_end: LogPosition | None = None
        """Up to where the waiting fetches know that they can read."""

    def __len__(self) -> int:
        return len(self._waits)

    def add(self, wait: FetchWait) -> None:
        if not self._waits:
            self._reported_end = self._partition.high_watermark_position
        self._waits[wait] = None

    def remove(self, wait: FetchWait) -> None:
        self._waits.pop(wait, None)

    def wake(self) -> None:
        """Tells them how many bytes became readable since the last call."""
        partition, seen = self._partition, self._reported_end
        try:
            now = partition.high_watermark_position
        except ApiError:
            self.answer()  # The disk fails: they read again, and get that error.
            return
        if seen is None:
            return  # All were answered before this turn.
        self._reported_end = now
        size = partition.bytes_between(seen, now)
        for wait in list(self._waits):
            wait.bytes_committed(partition, size)

    def answer(self) -> None:
        """Ends the wait of every fetch now, with what there is to read."""
        for wait in list(self._waits):
            wait.end()
