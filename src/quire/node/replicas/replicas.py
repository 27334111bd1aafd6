"""`Replicas`: what the node and its partitions call to have partitions copied between brokers.

A partition whose role changes is assigned to the fetcher of its leader, or taken from it. So a node has one fetcher for
each node that leads partitions of it, however many partitions there are. A fetcher ends with its last partition.
"""

from functools import partial
from typing import TYPE_CHECKING

from quire.node.node_links import NodeLinks
from quire.node.replicas.fetcher import ReplicaFetcher
from quire.node.replicas.isr_changes import IsrChanges
from quire.node.replicas.replica_session import ReplicaSessions
from quire.node.replicas.segment_repairs import SegmentRepairs
from quire.node.replicas.throttles import Throttles
from quire.replication.follower_role import FollowerRole
from quire.replication.partition import Partition
from quire.seams import Timer

if TYPE_CHECKING:
    from quire.metadata.image import ClusterImage
    from quire.node.node import Node

CHECKS_PER_TURN = 500
"""How many partitions are looked at for lag before other requests are served: a few milliseconds."""


class Replicas:
    __slots__ = (
        "_fetchers",
        "_followed",
        "_lag_timer",
        "_links",
        "_node",
        "_stopped",
        "isr_changes",
        "repairs",
        "sessions",
        "throttles",
    )

    def __init__(self, node: "Node") -> None:
        self._node = node
        self.sessions = ReplicaSessions(node.clock, node.random)
        self.throttles = Throttles(node.config, node.clock)
        self.throttles.changed = self._throttles_changed
        self.isr_changes = IsrChanges(node)
        self.repairs = SegmentRepairs(node)
        self._links: NodeLinks[tuple[int, str]] = NodeLinks(clock=node.clock, network=node.network, random=node.random)
        self._fetchers: dict[int, ReplicaFetcher] = {}
        """By the id of the leader."""
        self._followed: dict[Partition, ReplicaFetcher] = {}
        self._lag_timer: Timer | None = None
        self._stopped = False

    def start(self) -> None:
        """The node serves: it may lead partitions."""
        self._check_lag_later()

    def stop(self) -> None:
        """Copies nothing more. What was copied is in the logs."""
        self._stopped = True
        self.repairs.stop()
        if self._lag_timer is not None:
            self._lag_timer.cancel()
        for fetcher in self._fetchers.values():
            fetcher.close()
        self.isr_changes.close()
        self.throttles.close()
        self._links.close()

    # --- What partitions and metadata say

    def role_changed(self, partition: Partition) -> None:
        follower, leader = partition.follower, partition.leader
        before = self._followed.pop(partition, None)
        if before is not None:
            before.unfollow(partition.topic_id, partition.index)
            if before.is_idle:
                self._node.clock.call_soon(partial(self._end_if_idle, before))
        if leader is not None and leader.followers:
            self.sessions.expect_fetches_soon(leader.followers.in_sync.replicas)
        if follower is not None and not self._stopped:
            fetcher = self._fetchers.get(follower.leader_id)
            if fetcher is None:
                fetcher = self._fetchers[follower.leader_id] = ReplicaFetcher(
                    self._node, follower.leader_id, self._links, self.throttles.follower
                )
            self._followed[partition] = fetcher
            fetcher.follow(follower)

    def _end_if_idle(self, fetcher: ReplicaFetcher) -> None:
        """The node leads nothing that is copied here. Its machine may be gone, so its connections are not used again.

        A fetch that waits there would wait until it times out, and hold up the next ones if that node leads again.
        """
        leader_id = fetcher.leader_id
        if fetcher.is_idle and self._fetchers.get(leader_id) is fetcher:
            del self._fetchers[leader_id]
            fetcher.close()
            self._links.close_unless(lambda purpose, _: purpose[0] != leader_id)

    def flushed(self, follower: FollowerRole) -> None:
        fetcher = self._followed.get(follower.partition)
        if fetcher is not None:
            fetcher.flushed(follower)

    def brokers_changed(self, image: "ClusterImage") -> None:
        """Brokers were registered, fenced, unfenced or removed."""
        self.sessions.keep_only(image)
        for fetcher in self._fetchers.values():
            fetcher.address_changed()
        for partition in self._node.partitions:
            if partition.leader is not None and partition.leader.followers:
                partition.leader.followers.consider_joining()

    def _throttles_changed(self) -> None:
        self.sessions.quota_changed()
        for fetcher in self._fetchers.values():
            fetcher.quota_changed()

    def may_join_isr(self, replica_id: int, broker_epoch: int) -> bool:
        broker = self._node.image.brokers.get(replica_id)
        return broker is not None and broker.is_active and broker_epoch in (-1, broker.epoch)

    # --- Lag

    def _check_lag_later(self) -> None:
        max_lag_ms = self._node.config.get_int("replica.lag.time.max.ms")
        self._lag_timer = self._node.clock.call_later(max_lag_ms / 2, self._check_lag)

    def _check_lag(self) -> None:
        self._check_some(list(self._node.partitions))

    def _check_some(self, left: list[Partition]) -> None:
        """A part of the partitions in each turn of the event loop."""
        if self._stopped:
            return
        now_ms = self._node.clock.monotonic_ms()
        max_lag_ms = self._node.config.get_int("replica.lag.time.max.ms")
        for partition in left[:CHECKS_PER_TURN]:
            if partition.leader is not None and partition.leader.followers:
                partition.leader.followers.check_lag(now_ms, max_lag_ms)
        if len(left) > CHECKS_PER_TURN:
            self._node.clock.call_soon(partial(self._check_some, left[CHECKS_PER_TURN:]))
        else:
            self._check_lag_later()
