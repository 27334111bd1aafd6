"""A request that wrote records and waits until they are committed or on disk (Kafka: DelayedProduce).

The waits of a partition are in its `LeaderRole`, in order of arrival. A wait ends when every partition is done, or at
its timeout, whichever is first. It leaves nothing behind when the client disconnects.
"""

from typing import TYPE_CHECKING

from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from quire.seams import Clock, Timer

if TYPE_CHECKING:
    from quire.replication.leader_role import LeaderRole


class CommitWait(Pending[dict["LeaderRole", ErrorCode]]):
    """Completed when each partition that the request wrote to has its records as safe as the request asked for.

    The result has the partitions where that failed, with the error.
    """

    __slots__ = ("_failed", "_timer", "_waiting")

    holds_up_next = False
    """The records are in the log: the next ones may be appended behind them."""

    def __init__(self) -> None:
        super().__init__(on_abandoned=self._stop_waiting)
        self._waiting: dict[LeaderRole, None] = {}
        self._failed: dict[LeaderRole, ErrorCode] = {}
        self._timer: Timer | None = None

    def wait_for(self, leader: "LeaderRole", offset: int, *, acks_all: bool) -> None:
        """Waits until everything before `offset` is committed, or without `acks_all`, is safe in the leader's log."""
        if not leader.is_active:
            # The append itself took the partition offline: it found its disk broken when it moved the high watermark.
            self._failed[leader] = leader.end_error
            return
        self._waiting[leader] = None
        waits = leader.commit_waits if acks_all else leader.flush_waits
        waits.append((offset, self))

    def start(self, clock: Clock, timeout_ms: int | None) -> None:
        if not self._waiting:
            self.complete_once(self._failed)
        elif timeout_ms is not None:
            self._timer = clock.call_later(timeout_ms, self._time_out)

    def partition_done(self, leader: "LeaderRole", error: ErrorCode = ErrorCode.NONE) -> None:
        """The records in this partition are safe or, with an `error`, will not be under this leader."""
        waiting = self._waiting
        if leader in waiting:
            del waiting[leader]
            if error is not ErrorCode.NONE:
                self._failed[leader] = error
            if not waiting:
                self._complete()

    def _time_out(self) -> None:
        for leader in self._waiting:
            self._failed[leader] = ErrorCode.REQUEST_TIMED_OUT
        self._complete()

    def _complete(self) -> None:
        self._stop_waiting()
        self.complete_once(self._failed)

    def _stop_waiting(self) -> None:
        """Also when the client has disconnected. The leader drops the queue entry when its offset is reached."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
