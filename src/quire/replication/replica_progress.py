"""How far one follower has copied the partition, as its fetches from this leader show.

A fetch at an offset says that the follower has everything before it. Whether a follower keeps up is judged by samples:
now and then the leader notes where its own log ends, and a follower that has reached the end of an earlier sample was
in sync at the time of that sample. So an append costs nothing here, and neither does a follower of an idle partition.
"""

UNKNOWN = -1
NEVER = float("-inf")


class ReplicaProgress:
    """Of one follower under one leadership."""

    __slots__ = (
        "_leader_end",
        "broker_epoch",
        "end_offset",
        "in_sync_at_ms",
        "keeps_up",
        "log_start_offset",
        "may_have_stopped",
        "must_start_at",
    )

    def __init__(self) -> None:
        self.end_offset = UNKNOWN
        """Everything before this is in the follower's log; `UNKNOWN` until it has fetched from this leader."""
        self.log_start_offset = UNKNOWN
        self.must_start_at = UNKNOWN
        """Where the leader's log began when the follower first fetched. What the follower has before that is of an
        earlier leader, and cannot be compared with anything: it may not be what was committed there."""
        self.broker_epoch = UNKNOWN
        self.keeps_up = False
        """The last fetch began at or after the end that the leader's log had at the one before."""
        self.in_sync_at_ms: float | None = NEVER
        """When it last had all that the leader had, as far as the samples show; None until the next sample."""
        self.may_have_stopped = False
        """It was lagging when that was last checked, and has not fetched since."""
        self._leader_end = UNKNOWN

    def counts_as_in_sync(self) -> None:
        """It is a member of the ISR now, and gets the time that every member has to catch up."""
        self.in_sync_at_ms = None

    @property
    def has_own_start(self) -> bool:
        """Whether it still has what the leader cannot compare."""
        return self.log_start_offset < self.must_start_at

    def fetched(
        self, offset: int, log_start_offset: int, broker_epoch: int, *, leader_start: int, leader_end: int
    ) -> None:
        if self.end_offset == UNKNOWN or broker_epoch != self.broker_epoch:
            self.must_start_at = leader_start
        self.keeps_up = self._leader_end != UNKNOWN and offset >= self._leader_end
        self._leader_end = leader_end
        self.may_have_stopped = False
        self.end_offset = offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch

    def sampled(self, leader_end: int, now_ms: float, earlier_end: int, earlier_ms: float) -> None:
        """The leader's log ends at `leader_end` now, and ended at `earlier_end` when the last sample was taken."""
        if self.in_sync_at_ms is None or self.end_offset >= leader_end:
            self.in_sync_at_ms = now_ms
        elif self.end_offset >= earlier_end:
            self.in_sync_at_ms = max(self.in_sync_at_ms, earlier_ms)

    def check_lag(self, now_ms: float, max_lag_ms: float) -> bool:
        """Whether it lags, by the samples."""
        self.may_have_stopped = self.in_sync_at_ms is not None and now_ms - self.in_sync_at_ms > max_lag_ms
        return self.may_have_stopped
