"""Mistakes of leaders and followers (quire.replication, quire.node.replicas)."""

from simulator.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "acks=all is answered before the high watermark",
        "quire.replication.leader_role:LeaderRole.may_acknowledge",
        "offset < self._own_end and (not acks_all or offset < self.partition.high_watermark)",
        "offset < self._own_end",
    ),
    Mutant(
        "the ISR counts before the controller has agreed",
        "quire.replication.in_sync_replicas:InSyncReplicas.propose",
        "self.maximal = tuple(dict.fromkeys(self.committed + isr))",
        "self.maximal = isr",
    ),
    Mutant(
        "the high watermark moves below min.insync.replicas",
        "quire.replication.followers:Followers.committed_end",
        "if self.is_under_min_isr:",
        "if False:",
    ),
    Mutant(
        "a follower truncates to its high watermark",
        "quire.replication.follower_role:FollowerRole.truncation_offset",
        "return max(kept, 0)",
        "return max(self.partition.high_watermark, log.start_offset)",
    ),
    Mutant(
        "a fetch has no epoch of the follower's last batch",
        "quire.node.replicas.fetch_schedule:_wanted",
        "last_fetched_epoch=last_epoch,",
        "last_fetched_epoch=-1,",
    ),
    Mutant(
        "a follower takes the batches of an earlier leader",
        "quire.node.replicas.fetcher:ReplicaFetcher._answered",
        "if copied is not None and copied.follower.is_active:",
        "if copied is not None:",
    ),
    Mutant(
        "a replica joins the ISR without the records of earlier leaders",
        "quire.replication.followers:Followers._consider",
        "progress.end_offset >= max(partition.high_watermark, self._leader.epoch_start_offset)",
        "progress.end_offset >= partition.high_watermark - 1",
    ),
    Mutant(
        "an old leader continues to serve",
        "quire.replication.partition:Partition.become_follower",
        "self._change_role(None, FollowerRole(self, leader_id, leader_epoch), ErrorCode.NOT_LEADER_OR_FOLLOWER)",
        "self.follower = FollowerRole(self, leader_id, leader_epoch)\n    self.owner.role_changed(self)",
    ),
    Mutant(
        "a leader holds the stable offset back for its own markers only",
        "quire.replication.partition:Partition.become_leader",
        "leader = LeaderRole(self, self.leader_epoch, members)",
        "self.log.uncommitted_markers.clear()\n    leader = LeaderRole(self, self.leader_epoch, members)",
    ),
    Mutant(
        "a follower does not flush before it fetches on",
        "quire.replication.follower_role:FollowerRole.may_fetch",
        "return not self.log.is_flush_due",
        "return True",
    ),
    Mutant(
        "a leader counts what it has not flushed",
        "quire.replication.leader_role:LeaderRole.advance_high_watermark",
        "own_end = log.recovery_point",
        "own_end = log.end_offset",
    ),
    Mutant(
        "a follower takes all that it has for committed",
        "quire.replication.follower_role:FollowerRole.leader_committed",
        "reached = min(high_watermark, self.log.end_offset)",
        "reached = self.log.end_offset",
    ),
    Mutant(
        "a leader counts what a follower is about to get",
        "quire.replication.replica_progress:ReplicaProgress.fetched",
        "self.end_offset = offset",
        "self.end_offset = leader_end",
    ),
    Mutant(
        "consumers read to the end of the log",
        "quire.replication.partition:Partition.readable_end",
        "return self.high_watermark_position",
        "return self.log.end",
    ),
    Mutant(
        "a leader does not wait for members of the ISR that have not fetched from it",
        "quire.replication.followers:Followers._members_changed",
        "if each in self.in_sync.maximal]",
        "if each in self.in_sync.maximal and progress.end_offset != UNKNOWN]",
    ),
    Mutant(
        "a follower appends batches without looking at their offsets",
        "quire.replication.follower_role:FollowerRole._check_order",
        "header.base_offset < offset or header.last_offset_delta < 0 or header.leader_epoch < epoch",
        "header.last_offset_delta < 0",
    ),
)
