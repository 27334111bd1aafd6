"""`ThrottledCopies`: which throttled partitions a fetcher asks for, so that the follower's quota holds.

A throttled partition that is not in sync is held back while the quota is used up. Otherwise only a few of them are
fetched at a time, those first that have waited longest: what comes of them cannot exceed the quota by much, and a fetch
names only these few again, however many there are. Partitions that are in sync are fetched like all others.
"""

from collections import OrderedDict

from quire.node.partitions.hosted import PartitionId
from quire.node.replicas.fetch_schedule import UNLIMITED_BYTES, CopiedPartition, FetchSchedule
from quire.node.replicas.replication_quota import UNLIMITED, QuotaWaiter, ReplicationQuota

AT_ONCE_MIN, AT_ONCE_MAX = 2, 8
SHARE_BYTES = 256 << 10
"""With less than this of the rate for each of them, fewer are fetched at a time.

A fetch asks for what the rate allows in a second. The leader cuts off what it sends of a partition within a batch, and
the part of a batch counts although it has to come again: the shares must be much larger than most batches.
"""


class ThrottledCopies:
    __slots__ = ("_admitted", "_held", "_quota", "_schedule", "_served", "_waiter")

    def __init__(self, quota: ReplicationQuota, schedule: FetchSchedule, waiter: QuotaWaiter) -> None:
        self._quota = quota
        self._schedule = schedule
        self._waiter = waiter
        self._held: OrderedDict[PartitionId, CopiedPartition] = OrderedDict()
        """In the order in which they will be fetched."""
        self._admitted: dict[PartitionId, CopiedPartition] = {}
        self._served: set[PartitionId] = set()
        """Those of `_admitted` of which something has come."""

    def wait_max_ms(self, longest_ms: int) -> int:
        """How long the leader may keep a fetch: the next one may name those that are held."""
        left_ms = self._quota.left_ms
        return min(longest_ms, int(left_ms) + 1) if self._held and left_ms > 0 else longest_ms

    def answered(self, copied: CopiedPartition, size_bytes: int) -> None:
        """A fetch has brought this much of a partition, and whether it is in sync is known."""
        quota, partition = self._quota, copied.follower.partition
        if not quota.throttled or not quota.is_throttled(partition.topic, partition.index):
            return
        if size_bytes:
            quota.record(size_bytes)
            if copied.key in self._admitted:
                self._served.add(copied.key)
        if not copied.is_in_sync and quota.rate != UNLIMITED:
            self._schedule.changed(copied)  # so that `before_fetch` decides

    def removed(self, key: PartitionId) -> None:
        self._held.pop(key, None)
        self._admitted.pop(key, None)
        self._served.discard(key)

    def quota_changed(self) -> None:
        """Other partitions may be throttled, or the rate is another: all are considered again."""
        self._release_all()
        if self._quota.throttled:
            for copied in self._schedule.partitions.values():
                if self._is_limited(copied):
                    self._schedule.changed(copied)

    def _release_all(self) -> None:
        for copied in self._admitted.values():
            copied.max_bytes = UNLIMITED_BYTES
        for key in self._held:
            self._schedule.release(key)
        self._held.clear()
        self._admitted.clear()
        self._served.clear()

    def before_fetch(self) -> None:
        """Holds back what the next fetch must not name, and admits what it may."""
        if not self._quota.throttled:
            return
        for key, copied in list(self._admitted.items()):
            if not self._schedule.is_fetched(copied) or not self._is_limited(copied):
                self._dismiss(key)
        for copied in self._schedule.to_name():
            if copied.key not in self._admitted and self._is_limited(copied):
                self._hold(copied)
        if self._quota.is_used_up:
            self._hold_admitted()
            if self._held:
                self._quota.wait(self._waiter)
        else:
            self._admit()

    def _is_limited(self, copied: CopiedPartition) -> bool:
        if copied.is_in_sync or self._quota.rate == UNLIMITED:
            return False
        partition = copied.follower.partition
        return self._quota.is_throttled(partition.topic, partition.index)

    def _hold(self, copied: CopiedPartition) -> None:
        self._schedule.hold(copied)
        self._held[copied.key] = copied

    def _dismiss(self, key: PartitionId) -> None:
        self._admitted.pop(key).max_bytes = UNLIMITED_BYTES
        self._served.discard(key)

    def _hold_admitted(self) -> None:
        """Those of which nothing has come are the next ones."""
        served = self._served.copy()
        for key, copied in reversed(list(self._admitted.items())):
            self._dismiss(key)
            self._hold(copied)
            self._held.move_to_end(key, last=key in served)

    def _admit(self) -> None:
        at_once = at_once_of(self._quota.rate)
        while self._held and len(self._admitted) < at_once:
            key, copied = self._held.popitem(last=False)
            self._schedule.release(key)
            self._admitted[key] = copied
        for copied in self._admitted.values():
            copied.max_bytes = max(1, self._quota.rate // len(self._admitted))


def at_once_of(rate: int) -> int:
    return max(AT_ONCE_MIN, min(AT_ONCE_MAX, rate // SHARE_BYTES))
