"""The followers of a partition as their leader sees them: who is in sync, and how far that commits records.

Everything before the smallest log end among the in-sync replicas is committed. A follower joins the ISR when it has all
that is committed and all that earlier leaders have written; it leaves when it has not kept up for
`replica.lag.time.max.ms`, and is considered again when it has fetched. The controller decides:

    `fetched` or `consider_joining` finds a follower that has caught up, or `check_lag` one that lags;
    `_propose` calls `PartitionOwner.isr_change_wanted`, and the owner sends `change` to the controller;
    the metadata brings the decision to `change_members`, or the answer brings a refusal to `refused`.

Until then the larger of both sets counts (`in_sync_replicas.py`).
"""

from typing import TYPE_CHECKING

from quire.pending import Pending
from quire.replication.in_sync_replicas import InSyncReplicas, IsrChange
from quire.replication.members import Members
from quire.replication.replica_progress import UNKNOWN, ReplicaProgress

if TYPE_CHECKING:
    from quire.replication.leader_role import LeaderRole

MOST_DELETIONS = 1_000
"""How many deletions may wait for followers; for more, the oldest end at the timeout of their clients."""


class Followers:
    """Of one leadership."""

    __slots__ = (
        "_counting",
        "_joining",
        "_leader",
        "_low_waits",
        "_progress",
        "_sampled_end",
        "_sampled_ms",
        "in_sync",
        "is_under_min_isr",
    )

    def __init__(self, leader: "LeaderRole", members: Members) -> None:
        self._leader = leader
        self.in_sync = InSyncReplicas(members)
        self.is_under_min_isr = False
        """Too few replicas are in sync: acks=all writes are refused, and nothing more is committed (KIP-966)."""
        self._progress: dict[int, ReplicaProgress] = {}
        """By node id."""
        self._counting: list[ReplicaProgress] = []
        """Of those that may be in sync: what they lack is not committed."""
        self._joining: dict[int, ReplicaProgress] = {}
        """Of those that keep up, but that records appended meanwhile keep from being where the high watermark is. It
        waits for them too, so that they can join, as long as they fetch."""
        self._low_waits: list[tuple[int, Pending[int]]] = []
        """Deletions, each with the offset that all logs have to start at."""
        self._sampled_end = UNKNOWN
        self._sampled_ms = 0.0
        """Where the log ended when lag was last checked, and when that was."""
        self._members_changed()

    def __bool__(self) -> bool:
        return bool(self._progress)

    @property
    def required_in_sync(self) -> int:
        return self.in_sync.required(self._leader.partition.settings.min_insync_replicas)

    def committed_end(self, own_end: int) -> int:
        """The end of what all in-sync replicas have, this node's own log being safe up to `own_end`; -1 if unknown."""
        if self.is_under_min_isr:
            return UNKNOWN
        for progress in self._counting:
            if progress.end_offset < own_end:
                own_end = progress.end_offset
        for progress in self._joining.values():
            own_end = min(own_end, progress.end_offset)
        return own_end

    # --- The start of the logs

    def low_watermark(self) -> int:
        """The smallest start of the log among the replicas whose brokers are up."""
        may_join = self._leader.partition.owner.may_join_isr
        up = (each for replica_id, each in self._progress.items() if may_join(replica_id, each.broker_epoch))
        return min([self._leader.log.start_offset, *(each.log_start_offset for each in up)])

    def when_deleted(self, offset: int) -> Pending[int]:
        """Completed when no replica whose broker is up has anything before `offset`, with the low watermark."""
        deleted: Pending[int] = Pending()
        # A request that has timed out does not take its entry away, so their number has a limit.
        del self._low_waits[: -MOST_DELETIONS + 1]
        self._low_waits.append((offset, deleted))
        self._complete_deletions()
        return deleted

    def _complete_deletions(self) -> None:
        low = self.low_watermark()
        done = [deleted for offset, deleted in self._low_waits if offset <= low]
        self._low_waits = [each for each in self._low_waits if each[0] > low]
        for deleted in done:
            deleted.complete_once(low)

    def holding(self, offset: int) -> list[tuple[int, ReplicaProgress]]:
        """The followers in the ISR that have the record at `offset`, or will have it next.

        A consumer that was sent to another one might fall behind with it, and be sent there again.
        """
        return [
            (replica_id, each)
            for replica_id, each in self._progress.items()
            if replica_id in self.in_sync.committed and each.log_start_offset <= offset <= each.end_offset
        ]

    # --- Joining and leaving

    def fetched(self, replica_id: int, broker_epoch: int, offset: int, log_start_offset: int) -> None:
        """A follower has everything before `offset` in its log, as this leader has it."""
        leader = self._leader
        progress = self._progress.get(replica_id)
        if progress is None:
            return  # It was removed from the replicas while its fetch was in progress.
        log = leader.log
        progress.fetched(
            offset, log_start_offset, broker_epoch, leader_start=log.start_offset, leader_end=log.end_offset
        )
        if replica_id not in self.in_sync.maximal:
            self._consider(replica_id, progress)
        if leader.partition.high_watermark < leader.log.end_offset:
            leader.advance_high_watermark()
        if self._low_waits:
            self._complete_deletions()

    def consider_joining(self) -> None:
        """Brokers have changed, or a change of the ISR is done: what kept followers out of it may be over."""
        outside = self._outside()
        for replica_id in outside:
            self._consider(replica_id, self._progress[replica_id])
        if outside:
            # It may have waited for one that will not join.
            self._leader.advance_high_watermark()
        if self._low_waits:
            self._complete_deletions()

    def _consider(self, replica_id: int, progress: ReplicaProgress) -> None:
        self._joining.pop(replica_id, None)
        if progress.end_offset == UNKNOWN or progress.may_have_stopped:
            # What it last fetched says nothing of now: its broker can be up, but cut off from this one.
            return
        if progress.has_own_start:
            return
        partition = self._leader.partition
        if not partition.owner.may_join_isr(replica_id, progress.broker_epoch):
            return
        has_caught_up = progress.end_offset >= max(partition.high_watermark, self._leader.epoch_start_offset)
        if has_caught_up and self.in_sync.proposed is None:
            self._propose((*self.in_sync.committed, replica_id))
        elif has_caught_up or progress.keeps_up:
            self._joining[replica_id] = progress

    def check_lag(self, now_ms: float, max_lag_ms: float) -> None:
        """Proposes that followers leave the ISR that have not kept up for `max_lag_ms`. Called more often than that.

        If the last call is longer ago, this node was paused, and the fetches that came meanwhile are still unread.
        """
        leader_end = self._leader.log.end_offset
        if now_ms - self._sampled_ms > max_lag_ms:
            self._members_count_as_in_sync()
        for progress in self._progress.values():
            progress.sampled(leader_end, now_ms, self._sampled_end, self._sampled_ms)
        self._sampled_end, self._sampled_ms = leader_end, now_ms
        lagging = [each for each, progress in self._progress.items() if progress.check_lag(now_ms, max_lag_ms)]
        remaining = tuple(each for each in self.in_sync.committed if each not in lagging)
        if self.in_sync.proposed is None and remaining != self.in_sync.committed:
            self._propose(remaining)
        # Also for followers that were not considered when a change of another one was refused.
        self.consider_joining()
        self._leader.advance_high_watermark()

    def _members_count_as_in_sync(self) -> None:
        for progress in self._counting:
            progress.counts_as_in_sync()

    def _propose(self, isr: tuple[int, ...]) -> None:
        self.in_sync.propose(isr)
        self._members_changed()
        self._leader.partition.owner.isr_change_wanted(self._leader)

    # --- What the controller decides

    @property
    def change(self) -> IsrChange | None:
        """What the controller has to decide; None if there is nothing, or no longer."""
        in_sync = self.in_sync
        if in_sync.proposed is None or not self._leader.is_active:
            return None
        epochs = tuple(
            self._progress[each].broker_epoch if each in self._progress else UNKNOWN for each in in_sync.proposed
        )
        return IsrChange(in_sync.proposed, epochs, self._leader.leader_epoch, in_sync.partition_epoch)

    def unanswered(self, change: IsrChange) -> None:
        """A request with the change was sent, and its answer was lost, or says nothing about the change."""
        if self.in_sync.proposed is change.isr:
            self.in_sync.has_unanswered_request = True

    def refused(self, change: IsrChange) -> bool:
        """The controller has refused the change; False if an earlier request may still bring it about.

        What the controller has refused may be allowed by the time that request arrives. It is void as soon as the
        metadata has another state of the partition, so the controller writes one when it refuses a member.
        """
        if self.in_sync.proposed is change.isr and self.in_sync.has_unanswered_request:
            return False
        self.withdraw(change)
        return True

    def withdraw(self, change: IsrChange) -> None:
        """The change never takes effect, or is none."""
        if self.in_sync.proposed is change.isr:
            self.in_sync.withdraw()
            self._members_changed()
            self._leader.advance_high_watermark()

    def change_members(self, members: Members) -> None:
        """The controller has changed the partition; this node still leads it in the same epoch."""
        if self.in_sync.commit(members):
            self._members_changed()
            self._leader.advance_high_watermark()
            self.consider_joining()

    def settings_changed(self) -> None:
        self.is_under_min_isr = len(self.in_sync.committed) < self.required_in_sync

    def _members_changed(self) -> None:
        """The replicas or the ISR have changed, or a change of the ISR was proposed or refused."""
        own_id = self._leader.partition.node_id
        self._progress = {
            each: self._progress.get(each) or ReplicaProgress() for each in self.in_sync.replicas if each != own_id
        }
        counting = [progress for each, progress in self._progress.items() if each in self.in_sync.maximal]
        for progress in counting:
            if progress not in self._counting:
                progress.counts_as_in_sync()
        self._counting = counting
        outside = self._outside()
        self._joining = {each: progress for each, progress in self._joining.items() if each in outside}
        self.settings_changed()

    def _outside(self) -> list[int]:
        return [each for each in self._progress if each not in self.in_sync.maximal]
