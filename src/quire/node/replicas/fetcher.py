"""Copies all partitions that one other node leads, over one connection, with one fetch at a time.

The leader answers a fetch when it has something new. What comes is written at once, and the next fetch says so: that
is what commits records on the leader. An error of one partition, a flush that it needs, or a log that has to be brought
together with the leader's makes that partition wait, and no other.
"""

import logging
from typing import TYPE_CHECKING

from quire.client.link import CallResult
from quire.node.node_links import NodeLinks
from quire.node.replicas.fetch_schedule import FIRST_PAUSE_MS, NOT_REQUESTED, CopiedPartition, FetchSchedule
from quire.node.replicas.log_joining import LogJoining
from quire.node.replicas.replication_quota import ReplicationQuota
from quire.node.replicas.throttled_copies import ThrottledCopies
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.fetch import EpochEndOffset, FetchRequest, FetchResponse, PartitionData, ReplicaState
from quire.replication.follower_role import FollowerRole
from quire.seams import Timer
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.throttled_log import ThrottledLog

if TYPE_CHECKING:
    from quire.node.node import Node

log = logging.getLogger("quire.replicas")

FETCH_VERSIONS = (15, 18)
RETRY_MS = 20.0
"""After a fetch without an answer. The connection has a back-off of its own."""
SHORT_WAIT_MS = 1
FLUSH_SHARE = 0.25
"""The leader may keep a fetch for this share of the time for which a partition has waited for its flush already.

So a slow disk costs a few fetches, and the partition is at most this much later than it could be.
"""
NEVER_MS = 3_600_000.0

_PASSES = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
"""Normal while nodes learn of an election or a new topic at different times."""


class ReplicaFetcher:
    def __init__(
        self, node: "Node", leader_id: int, links: NodeLinks[tuple[int, str]], quota: ReplicationQuota
    ) -> None:
        self.leader_id = leader_id
        self._node = node
        self._links = links
        self._schedule = FetchSchedule()
        self._throttled = ThrottledCopies(quota, self._schedule, self)
        self._flushing: dict[CopiedPartition, float] = {}
        """Partitions that are left out until their logs are on disk, and since when."""
        self._joining = LogJoining(node, leader_id, links)
        self._is_fetching = False
        self._scheduled = False
        self._closed = False
        self._timer: Timer | None = None
        self._log = ThrottledLog(log, node.clock)

    @property
    def is_idle(self) -> bool:
        return not self._schedule.partitions

    def follow(self, follower: FollowerRole) -> None:
        topic_id, index = follower.partition.topic_id, follower.partition.index
        image = self._node.image.partition(topic_id, index)
        copied = CopiedPartition(follower, is_in_sync=image is not None and self._node.node_id in image.isr)
        self._throttled.removed(copied.key)
        self._schedule.add(copied)
        if not self._pause_for_flush(copied):
            self._fetch_soon()

    def unfollow(self, topic_id: bytes, index: int) -> None:
        copied = self._schedule.partitions.get((topic_id, index))
        if copied is not None:
            self._flushing.pop(copied, None)
            self._throttled.removed(copied.key)
            self._schedule.remove(copied.key)

    def has_quota(self) -> None:
        self._fetch_soon()

    def quota_changed(self) -> None:
        self._throttled.quota_changed()
        self._fetch_soon()

    def flushed(self, follower: FollowerRole) -> None:
        """The log is on disk as far as its topic asks for that: the partition may be fetched again."""
        copied = self._schedule.partitions.get((follower.partition.topic_id, follower.partition.index))
        if copied is not None and copied.follower is follower and copied in self._flushing:
            self._resume(copied)

    def address_changed(self) -> None:
        """The leader may have another address, or may have become reachable."""
        self._fetch_soon()

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    # --- Fetching

    def _fetch_soon(self) -> None:
        """All partitions that change in one turn of the event loop share a fetch."""
        if not self._is_fetching and not self._scheduled and not self._closed:
            self._scheduled = True
            self._node.clock.call_soon(self._fetch)

    def _fetch(self) -> None:
        self._scheduled = False
        schedule, config = self._schedule, self._node.config
        address = self._node.broker_links.address_of(self.leader_id)
        if self._is_fetching or self._closed or address is None:
            return
        schedule.resume_due(self._node.clock.monotonic_ms())
        self._throttled.before_fetch()
        if schedule.is_empty:
            self._wake_at_next_resume()
            if not schedule.has_session:
                return
        broker = self._node.broker
        assert broker is not None, "partitions are followed after the broker has registered"
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=self._node.node_id, replica_epoch=broker.epoch),
            max_wait_ms=self._max_wait_ms(),
            min_bytes=config.get_int("replica.fetch.min.bytes"),
            max_bytes=config.get_int("replica.fetch.response.max.bytes"),
        )
        schedule.fill(request, config.get_int("replica.fetch.max.bytes"))
        link = self._links.link((self.leader_id, "fetch"), address, f"quire-{self._node.node_id}-fetcher")
        self._is_fetching = True
        link.call(request, config.get_int("replica.socket.timeout.ms"), versions=FETCH_VERSIONS).when_done(
            self._answered
        )

    def _max_wait_ms(self) -> int:
        """The next fetch names the partitions that wait now, so the leader must not keep this one for longer."""
        longest = self._throttled.wait_max_ms(self._node.config.get_int("replica.fetch.wait.max.ms"))
        if self._flushing:
            waits_ms = self._node.clock.monotonic_ms() - max(self._flushing.values())
            return min(longest, max(SHORT_WAIT_MS, int(FLUSH_SHARE * waits_ms)))
        resume_ms = self._schedule.next_resume_ms
        if resume_ms is None:
            return longest
        return min(longest, max(1, int(resume_ms - self._node.clock.monotonic_ms()) + 1))

    def _wake_at_next_resume(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        resume_ms = self._schedule.next_resume_ms
        if resume_ms is not None:
            self._timer = self._node.clock.call_later(
                max(0.0, resume_ms - self._node.clock.monotonic_ms()), self._fetch_soon
            )

    def _answered(self, result: CallResult) -> None:
        self._is_fetching = False
        if self._closed:
            return
        if not isinstance(result, FetchResponse):
            self._schedule.lost()
            self._log.info(
                "replica fetch failed leader=%d error=%s", self.leader_id, result, kind="replica fetch failed"
            )
            self._node.clock.call_later(RETRY_MS, self._fetch_soon)
            return
        if not self._schedule.answered(result):
            self._fetch_soon()
            return
        if result.error_code:
            self._log.warning(
                "replica fetch refused leader=%d error=%s", self.leader_id, ErrorCode(result.error_code).name
            )
            self._node.clock.call_later(RETRY_MS, self._fetch_soon)
            return
        for topic in result.responses:
            for data in topic.partitions:
                copied = self._schedule.partitions.get((topic.topic_id, data.partition_index))
                if copied is not None and copied.follower.is_active:
                    self._take(copied, data)
        self._fetch_soon()

    # --- One partition

    def _take(self, copied: CopiedPartition, data: PartitionData) -> None:
        follower = copied.follower
        if copied.requested_offset == NOT_REQUESTED:
            return  # It answers a fetch of an earlier role, and says nothing about this one.
        if data.error_code:
            self._refused(copied, ErrorCode(data.error_code))
        elif follower.log.end_offset == copied.requested_offset:
            try:
                self._copy(copied, data)
            except DamagedBatchError as damage:
                # The log cannot be truncated before it is repaired.
                error = follower.partition.damage_error(damage)
                self._log.warning("replica damaged partition=%s error=%s", follower.partition, error.message)
                self._pause(copied)
            except ApiError as error:
                self._log.error("replica failed partition=%s error=%s", follower.partition, error.message)
                self._pause(copied)
            except Exception:
                # The other partitions must still be copied.
                self._log.exception("replica failed unexpectedly partition=%s", follower.partition)
                self._pause(copied)

    def _copy(self, copied: CopiedPartition, data: PartitionData) -> None:
        node, follower = self._node, copied.follower
        partition = follower.partition
        if data.diverging_epoch.epoch >= 0:
            # What remains may diverge too, so nothing is known to be committed before the next answer.
            self._truncate(copied, data.diverging_epoch)
            return
        if data.records:
            records = memoryview(data.records)  # type: ignore[arg-type]
            start = follower.start_of(records)
            if start is not None:
                node.partitions.start_over(partition, start)
            if not follower.append(records, node.clock.now_ms()):
                # The leader was deposed while it answered, or sent part of a batch.
                self._pause(copied)
                return
        copied.is_in_sync = data.high_watermark <= follower.log.end_offset
        self._throttled.answered(copied, len(data.records or b""))
        committed = min(data.high_watermark, follower.log.end_offset)
        start = min(data.log_start_offset, committed)
        if start > partition.log_start_offset:
            # What is before that start may be of an earlier leader: it must not become readable.
            node.partitions.follow_log_start(partition, start, lambda: self._start_moved(copied, committed))
        else:
            follower.leader_committed(committed)
        copied.pause_ms = 0.0
        if not follower.is_active:
            return
        if not self._pause_for_flush(copied) and copied.has_news:
            self._schedule.changed(copied)

    def _truncate(self, copied: CopiedPartition, diverging: EpochEndOffset) -> None:
        follower = copied.follower
        before = follower.fetch_position
        self._node.partitions.truncate(
            follower.partition, follower.truncation_offset(diverging.epoch, diverging.end_offset)
        )
        if follower.fetch_position == before:
            self._log.error("replica cannot be truncated partition=%s epoch=%d", follower.partition, diverging.epoch)
            self._pause(copied)
        else:
            # Only the epoch may have changed: one without records is removed.
            self._schedule.changed(copied)

    def _start_moved(self, copied: CopiedPartition, committed: int) -> None:
        """The next fetch tells the leader: a deletion is done when no replica has the records."""
        if copied.follower.is_active:
            copied.follower.leader_committed(committed)
        self._schedule.changed(copied)
        self._fetch_soon()

    def _refused(self, copied: CopiedPartition, code: ErrorCode) -> None:
        follower = copied.follower
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._schedule.pause(copied, self._node.clock.monotonic_ms() + NEVER_MS)
            self._joining.join(follower).when_done(lambda is_joined: self._joined(copied, is_joined))
            return
        tell = self._log.info if code in _PASSES else self._log.warning
        tell(
            "replica refused leader=%d partition=%s epoch=%d error=%s",
            self.leader_id,
            follower.partition,
            follower.leader_epoch,
            code.name,
            kind="replica refused",
        )
        self._pause(copied)

    def _joined(self, copied: CopiedPartition, is_joined: bool) -> None:
        if is_joined:
            self._resume(copied)
        else:
            self._pause(copied)

    def _pause(self, copied: CopiedPartition) -> None:
        longest = self._node.config.get_int("replica.fetch.backoff.ms")
        copied.pause_ms = min(max(2 * copied.pause_ms, FIRST_PAUSE_MS), longest)
        self._schedule.pause(copied, self._node.clock.monotonic_ms() + copied.pause_ms)
        self._fetch_soon()

    def _pause_for_flush(self, copied: CopiedPartition) -> bool:
        """A fetch says that everything before its offset is safe here, which a flush that is due must make true."""
        follower = copied.follower
        if follower.may_fetch:
            return False
        follower.flush_if_due()
        self._flushing[copied] = self._node.clock.monotonic_ms()
        self._schedule.pause(copied, self._node.clock.monotonic_ms() + NEVER_MS)
        return True

    def _resume(self, copied: CopiedPartition) -> None:
        self._flushing.pop(copied, None)
        self._schedule.resume(copied.key)
        self._fetch_soon()
