"""Requests that wait: produce for its records to be committed or on disk, fetch for enough bytes to send.

Both are answered by an event or by their timer, whichever is first, and leave nothing behind when the client goes away.
Partitions hold them in order of arrival; a wake-up costs nothing for partitions nobody waits for.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.seams import Clock, Timer
from quire.storage import LogPosition

if TYPE_CHECKING:
    from quire.replication.partition import Partition


class CommitWait(Pending[dict["Partition", ErrorCode]]):
    """A produce request that is over when each partition it wrote to has its records as safe as was asked for.

    Its result says which partitions have not, and why.
    """

    __slots__ = ("_failed", "_timer", "_waiting")

    def __init__(self) -> None:
        super().__init__(on_abandoned=self._forget)
        self._waiting: dict[Partition, None] = {}
        self._failed: dict[Partition, ErrorCode] = {}
        self._timer: Timer | None = None

    def wait_for(self, partition: "Partition", offset: int, *, acks_all: bool) -> None:
        """Waits until everything before `offset` is committed, or without `acks_all` is as safe as on the leader."""
        self._waiting[partition] = None
        waits = partition.commit_waits if acks_all else partition.flush_waits
        waits.append((offset, self))

    def start(self, clock: Clock, timeout_ms: int) -> None:
        if self._waiting:
            self._timer = clock.call_later(timeout_ms, self.time_out)

    def settled(self, partition: "Partition", error: ErrorCode = ErrorCode.NONE) -> None:
        """There is nothing more to wait for in this partition; an `error` says that it did not come to that."""
        waiting = self._waiting
        if partition in waiting:
            del waiting[partition]
            if error is not ErrorCode.NONE:
                self._failed[partition] = error
            if not waiting:
                self._end()

    def time_out(self) -> None:
        for partition in self._waiting:
            self._failed[partition] = ErrorCode.REQUEST_TIMED_OUT
        self._end()

    def _end(self) -> None:
        self._forget()
        self.complete_once(self._failed)

    def _forget(self) -> None:
        """Also when the client is gone. Its place in the partitions' queues goes when its turn comes."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()


class FetchWait:
    """A fetch that found less than it asked for and is answered when `missing_bytes` more can be read.

    With `committed_only` what counts is how far the last stable offset moves: to such a reader the records of an open
    transaction come with its end. ApiError when that cannot be found, because a disk fails.

    Where other requests were served since the partitions were read, `seen_ends` says how far they could be read then.
    """

    __slots__ = ("_partitions", "_stable_ends", "_timer", "finish", "missing_bytes")

    def __init__(
        self,
        partitions: list["Partition"],
        missing_bytes: int,
        finish: Callable[[], None],
        *,
        committed_only: bool = False,
        seen_ends: list[LogPosition] | None = None,
    ) -> None:
        ends = [each.readable_end(committed_only) for each in partitions] if committed_only or seen_ends else []
        self.missing_bytes = missing_bytes
        self.finish = finish
        self._partitions = partitions
        self._stable_ends = dict(zip(partitions, ends, strict=True)) if committed_only else None
        self._timer: Timer | None = None
        if seen_ends is not None:
            for partition, seen, now in zip(partitions, seen_ends, ends, strict=True):
                self.missing_bytes -= partition.bytes_between(seen, now) if partition.is_leader else missing_bytes
        for partition in partitions:
            partition.fetch_waits[self] = None

    def start(self, clock: Clock, max_wait_ms: int) -> None:
        if self.missing_bytes <= 0:
            self._end()
        else:
            self._timer = clock.call_later(max_wait_ms, self._end)

    def more_bytes(self, partition: "Partition", size: int) -> None:
        """`size` bytes more are committed in this partition, which is a reason to look how many can be read."""
        try:
            self.missing_bytes -= (
                size if self._stable_ends is None else self._stable_bytes(partition, self._stable_ends)
            )
        except ApiError:
            self.missing_bytes = 0  # Its disk fails: the client must hear of that now.
        if self.missing_bytes <= 0:
            self._end()

    @staticmethod
    def _stable_bytes(partition: "Partition", ends: dict["Partition", LogPosition]) -> int:
        seen, now = ends[partition], partition.readable_end(True)
        ends[partition] = now
        return partition.bytes_between(seen, now)

    def disturb(self) -> None:
        """Something about a partition changed that the client must hear of now: leadership, deletion, truncation."""
        self._end()

    def cancel(self) -> None:
        for partition in self._partitions:
            partition.fetch_waits.pop(self, None)
        self._partitions = []
        if self._timer is not None:
            self._timer.cancel()

    def _end(self) -> None:
        if self._partitions:
            self.cancel()
            self.finish()
