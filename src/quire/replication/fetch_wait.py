"""A fetch that waits for enough bytes to send (Kafka: DelayedFetch).

The wait is registered with every partition that the fetch reads (`waiting_fetches.py`). It ends when enough bytes can
be read, when a partition changes in a way that the client must learn of, or at its timeout, whichever is first. It
leaves nothing behind when the client disconnects.
"""

from typing import TYPE_CHECKING

from quire.pending import Pending
from quire.protocol.errors import ApiError
from quire.seams import Clock, Timer
from quire.storage import LogPosition

if TYPE_CHECKING:
    from quire.replication.follower_role import FollowerRole
    from quire.replication.leader_role import LeaderRole
    from quire.replication.partition import Partition


class FetchWait:
    """`ended` completes when `missing_bytes` more bytes can be read from the partitions together.

    With `committed_only` the last stable offset decides what can be read: such a reader gets the records of an open
    transaction only after its end. ApiError when a failing disk keeps that from being found.

    If other requests ran after the partitions were read, `seen_ends` has the end that each could be read to then.
    """

    __slots__ = ("_partitions", "_stable_ends", "_timer", "ended", "missing_bytes")

    def __init__(
        self,
        roles: "list[LeaderRole | FollowerRole]",
        missing_bytes: int,
        *,
        committed_only: bool = False,
        seen_ends: list[LogPosition] | None = None,
    ) -> None:
        """`roles` are those in which the partitions were read."""
        partitions = [each.partition for each in roles]
        ends = [each.readable_end(committed_only) for each in partitions] if committed_only or seen_ends else []
        self.missing_bytes = missing_bytes
        self.ended: Pending[None] = Pending(on_abandoned=self.cancel)
        self._partitions = partitions
        self._stable_ends = dict(zip(partitions, ends, strict=True)) if committed_only else None
        self._timer: Timer | None = None
        if seen_ends is not None:
            for role, seen, now in zip(roles, seen_ends, ends, strict=True):
                self.missing_bytes -= role.partition.bytes_between(seen, now) if role.is_active else missing_bytes
        for partition in partitions:
            partition.waiting_fetches.add(self)

    def start(self, clock: Clock, max_wait_ms: int) -> None:
        if self.missing_bytes <= 0:
            self.end()
        else:
            self._timer = clock.call_later(max_wait_ms, self.end)

    def bytes_committed(self, partition: "Partition", size: int) -> None:
        """`size` more bytes are committed in this partition, so more of it may be readable."""
        try:
            self.missing_bytes -= size if self._stable_ends is None else _stable_bytes(partition, self._stable_ends)
        except ApiError:
            self.missing_bytes = 0  # The disk fails: the client must get that error now.
        if self.missing_bytes <= 0:
            self.end()

    def end(self) -> None:
        """Ends the wait, with whatever there is to read."""
        if self._partitions:
            self.cancel()
            self.ended.complete(None)

    def cancel(self) -> None:
        for partition in self._partitions:
            partition.waiting_fetches.remove(self)
        self._partitions = []
        if self._timer is not None:
            self._timer.cancel()


def _stable_bytes(partition: "Partition", ends: "dict[Partition, LogPosition]") -> int:
    """How many bytes became readable for read_committed since `ends`, which this updates."""
    seen, now = ends[partition], partition.readable_end(True)
    ends[partition] = now
    return partition.bytes_between(seen, now)
