"""A fetch that waits for enough bytes to send (Kafka: DelayedFetch).

The wait is registered with the `LeaderRole` of every partition that the fetch reads. It ends when enough bytes can be
read, when a partition changes in a way that the client must learn of, or at its timeout, whichever is first. It leaves
nothing behind when the client disconnects.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from quire.protocol.errors import ApiError
from quire.seams import Clock, Timer
from quire.storage import LogPosition

if TYPE_CHECKING:
    from quire.replication.leader_role import LeaderRole


class FetchWait:
    """Calls `finish` when `missing_bytes` more bytes can be read from the partitions together.

    With `committed_only` the last stable offset decides what can be read: such a reader gets the records of an open
    transaction only after its end. ApiError when a failing disk keeps that from being found.

    If other requests ran after the partitions were read, `seen_ends` has the end that each could be read to then.
    """

    __slots__ = ("_leaders", "_stable_ends", "_timer", "finish", "missing_bytes")

    def __init__(
        self,
        leaders: list["LeaderRole"],
        missing_bytes: int,
        finish: Callable[[], None],
        *,
        committed_only: bool = False,
        seen_ends: list[LogPosition] | None = None,
    ) -> None:
        ends = [each.partition.readable_end(committed_only) for each in leaders] if committed_only or seen_ends else []
        self.missing_bytes = missing_bytes
        self.finish = finish
        self._leaders = leaders
        self._stable_ends = dict(zip(leaders, ends, strict=True)) if committed_only else None
        self._timer: Timer | None = None
        if seen_ends is not None:
            for leader, seen, now in zip(leaders, seen_ends, ends, strict=True):
                self.missing_bytes -= leader.partition.bytes_between(seen, now) if leader.is_active else missing_bytes
        for leader in leaders:
            leader.add_fetch_wait(self)

    def start(self, clock: Clock, max_wait_ms: int) -> None:
        if self.missing_bytes <= 0:
            self.end()
        else:
            self._timer = clock.call_later(max_wait_ms, self.end)

    def bytes_committed(self, leader: "LeaderRole", size: int) -> None:
        """`size` more bytes are committed in this partition, so more of it may be readable."""
        try:
            self.missing_bytes -= size if self._stable_ends is None else _stable_bytes(leader, self._stable_ends)
        except ApiError:
            self.missing_bytes = 0  # The disk fails: the client must get that error now.
        if self.missing_bytes <= 0:
            self.end()

    def end(self) -> None:
        """Ends the wait, with whatever there is to read."""
        if self._leaders:
            self.cancel()
            self.finish()

    def cancel(self) -> None:
        for leader in self._leaders:
            leader.fetch_waits.pop(self, None)
        self._leaders = []
        if self._timer is not None:
            self._timer.cancel()


def _stable_bytes(leader: "LeaderRole", ends: dict["LeaderRole", LogPosition]) -> int:
    """How many bytes became readable for read_committed since `ends`, which this updates."""
    seen, now = ends[leader], leader.partition.readable_end(True)
    ends[leader] = now
    return leader.partition.bytes_between(seen, now)
