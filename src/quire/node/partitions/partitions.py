"""`Partitions`: how the node and its handlers reach the partitions on this node.

`leader` is what handlers call for every partition of a request. The node passes committed metadata to `apply`, which
opens, changes or deletes logs accordingly. A partition whose log cannot be opened is missing here: its clients get
KAFKA_STORAGE_ERROR, and the others are served.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from quire.config.broker_config import BrokerConfig
from quire.metadata.delta import ImageDelta
from quire.metadata.image import ClusterImage, TopicImage
from quire.node.partitions import log_placement, offset_search, opening
from quire.node.partitions.events import PartitionEvents
from quire.node.partitions.hosted import HostedPartitions, PartitionId
from quire.node.partitions.log_deletions import LogDeletions
from quire.node.partitions.metadata_updates import MetadataUpdates
from quire.node.partitions.offset_search import OffsetSearchResult
from quire.node.partitions.opening import PartitionOpener
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.uuids import ZERO
from quire.replication.follower_role import FollowerRole
from quire.replication.leader_role import LeaderRole
from quire.replication.partition import FoundOffset, Partition
from quire.seams import Clock
from quire.storage import Log
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.scanning.range_check import ReadCheck

if TYPE_CHECKING:
    from quire.node.replicas import Replicas

log = logging.getLogger("quire.partitions")

MOST_WISHES = 10_000
"""Of so many partitions that do not exist a directory is remembered; the oldest is forgotten first."""


class Partitions:
    __slots__ = ("_hosted", "_node_id", "_opener", "announced", "metadata_updates")

    def __init__(self, config: BrokerConfig, clock: Clock, replicas: "Replicas") -> None:
        self._node_id = config.node_id
        self._hosted = HostedPartitions(config.node_id)
        self._opener = PartitionOpener(config, clock, self._hosted, PartitionEvents(self._hosted, replicas, clock))
        self.metadata_updates = MetadataUpdates(config, self._hosted, self._opener)
        self.announced: dict[PartitionId, bytes] = {}
        """The directories, by id, to which logs are about to move: the controller is told before."""

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._hosted)

    def __len__(self) -> int:
        return len(self._hosted.by_name)

    # --- Finding

    def leader(self, topic: str, topic_id: bytes | None, index: int) -> LeaderRole:
        """The leader of the partition, by topic id or, without one, by name; ApiError if this node cannot serve it."""
        partition = self.opened(topic, topic_id, index)
        if partition is None or (leader := partition.leader) is None:
            raise self._hosted.why_missing(topic, topic_id, index)
        return leader

    def readable(self, topic: str, topic_id: bytes | None, index: int) -> LeaderRole | FollowerRole:
        """The role in which this node can serve a consumer that may read from followers (KIP-392); ApiError if none."""
        partition = self.opened(topic, topic_id, index)
        role = None if partition is None else partition.leader or partition.follower
        if role is None:
            raise self._hosted.why_missing(topic, topic_id, index)
        return role

    def opened(self, topic: str, topic_id: bytes | None, index: int) -> Partition | None:
        """The partition, opened now if a request needs it first; None if it is not here."""
        hosted = self._hosted
        if topic_id is not None and topic_id != ZERO:
            partition = hosted.by_id.get((topic_id, index))
        else:
            partition = hosted.by_name.get((topic, index))
        if partition is None and (self._opener.postponed or self._opener.unopened):
            partition = self._opener.open_on_demand(hosted.topic(topic, topic_id), index)
        return partition

    def check_opened(self, wanted: Iterable[tuple[str, bytes | None, int]]) -> None:
        """ApiError if a request that cannot run in slices needs many partitions whose logs are not created yet."""
        postponed = self._opener.postponed
        left = opening.LOGS_PER_TURN
        for topic, topic_id, index in wanted if postponed else ():
            found = self._hosted.topic(topic, topic_id)
            left -= found is not None and (found.topic_id, index) in postponed
            if left < 0:
                self._opener.open_soon()
                raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the logs of a new topic are being created: try again")

    def current_leader(self, topic: str, topic_id: bytes | None, index: int) -> tuple[int, int]:
        """Node id and epoch of the partition's leader, (-1, -1) if the partition does not exist."""
        found = self._hosted.topic(topic, topic_id)
        partition = found.partitions.get(index) if found is not None else None
        return (-1, -1) if partition is None else (partition.leader, partition.leader_epoch)

    def has(self, partition: Partition) -> bool:
        """Whether the partition is still open here."""
        return partition in self._hosted.directory_of

    def of_topic(self, name: str) -> list[Partition]:
        return self._hosted.of_topic(name)

    # --- Metadata

    def apply(self, image: ClusterImage, delta: ImageDelta) -> None:
        """Makes the partitions what the committed metadata says."""
        self.metadata_updates.apply(image, delta)

    @property
    def deletions(self) -> LogDeletions:
        return self._opener.deletions

    # --- Data directories

    def use(self, directories: list[LogDirectory]) -> None:
        """Sets the directories that hold partitions."""
        self._hosted.directories = directories
        self._opener.read_high_watermarks()

    def directories(self) -> list[LogDirectory]:
        return self._hosted.directories

    def directory_of(self, partition: Partition) -> LogDirectory:
        return self._hosted.directory_of[partition]

    def directory_id_of(self, topic_id: bytes, index: int) -> bytes | None:
        """The id of the directory with the partition's log, even if that has failed; None if it is not known.

        If the log is about to move, it is that of the directory to which it moves.
        """
        partition = self._hosted.by_id.get((topic_id, index))
        directory = self._opener.offline_directory(topic_id, index)
        if partition is not None and (topic_id, index) in self.announced:
            return self.announced[topic_id, index]
        if partition is not None:
            directory = self._hosted.directory_of[partition]
        return None if directory is None or directory.meta is None else directory.meta.directory_id

    def directory_ids(self) -> set[bytes]:
        return {each.meta.directory_id for each in self.directories() if each.meta}

    def is_offline(self, topic_id: bytes, index: int) -> bool:
        """Whether the partition gets no log before the next start, because a directory has failed."""
        return self._opener.is_offline(topic_id, index)

    def in_directory(self, directory: LogDirectory) -> list[Partition]:
        return self._hosted.in_directory(directory)

    def take_missing_offline(self, expected: ClusterImage) -> None:
        """At a start; `expected` is the image from before the logs were loaded."""
        self._opener.take_missing_offline(expected)

    def take_undecided_offline(self, undecided: Mapping[tuple[str, int], LogDirectory], image: ClusterImage) -> None:
        """At a start: partitions of which a failed directory may have a newer log."""
        self._opener.take_undecided_offline(undecided, image)

    def has_moved(self, partition: Partition, target: LogDirectory, moved: Log) -> Log:
        """The partition's log is `moved`, which was its copy in `target`, from now on; returns the original."""
        key = (partition.topic, partition.index)
        original = self._hosted.directory_of[partition].leave_log(key)
        target.take_future(key)
        self._hosted.directory_of[partition] = target
        self._opener.configure(moved, original.config, target)
        partition.replace_log(moved)
        return original

    def wish(self, topic: str, index: int, directory: LogDirectory) -> None:
        """The log of the partition is to be created in this directory."""
        wishes = self._opener.wishes
        wishes.pop((topic, index), None)
        wishes[topic, index] = directory
        if len(wishes) > MOST_WISHES:
            del wishes[next(iter(wishes))]

    def delete_logs_of(self, topics: Iterable[TopicImage]) -> None:
        """Deletes the logs of topics that were deleted before the partitions of this node followed the image."""
        log_placement.delete_logs_of(self._hosted.directories, topics, self._opener.deletions)

    def clear_strays(self) -> None:
        """Deletes logs that were reassigned to other brokers, and sets those of unknown topics aside."""
        log_placement.clear_strays(self._hosted, self._node_id, self._opener.deletions)

    def directory_failed(self, directory: LogDirectory) -> None:
        self._opener.take_offline(directory)

    def failed_directory_ids(self) -> list[bytes]:
        return [each.meta.directory_id for each in self.directories() if each.failure and each.meta]

    def checkpoint(self) -> None:
        """Writes the directories' checkpoints, and tries again what failed for lack of space."""
        for directory in self.directories():
            directory.checkpoint()
        for partition in self:
            if partition.leader is not None:
                partition.leader.retry_flush()
            elif partition.follower is not None:
                partition.follower.flush_if_due()
        self._opener.retry_unopened()

    def checkpoint_high_watermarks(self) -> None:
        for directory in self.directories():
            directory.checkpoint_high_watermarks(
                {(held.topic, held.index): held.high_watermark for held in self.in_directory(directory)}
            )

    # --- Work on logs

    def delete_records(self, partition: Partition, offset: int) -> Pending[int]:
        """Moves the start of the log to `offset` (-1: the high watermark), here and on the followers that are up.

        Completed with the offset at which they start then. ApiError if that is not allowed. Stays pending if the disk
        fails first, the partition is deleted, or another node becomes the leader.
        """
        deleted: Pending[int] = Pending()
        target = partition.deletion_target(offset)

        def started() -> None:
            leader = partition.leader
            if leader is None:
                return  # It is not known here what the other replicas do.
            leader.log_start_moved()
            leader.followers.when_deleted(target).when_done(deleted.complete)

        if target == partition.log_start_offset:
            started()
        else:
            self.directory_of(partition).delete_records(partition.topic, partition.index, target, started)
        return deleted

    def truncate(self, partition: Partition, offset: int) -> None:
        """Removes everything from `offset` on, which the leader does not have. Logs a loss of committed records.

        If that is before the start of the log, it continues there, empty.
        """
        end, committed = partition.log.end_offset, partition.high_watermark
        self.directory_of(partition).truncate([(partition.log, offset)])
        partition.log_shortened()
        kept = partition.log.end_offset
        if kept < committed:
            log.warning(
                "committed records lost partition=%s from=%d to=%d: the leader does not have them; it was elected "
                "unclean, or it lost its disk",
                partition,
                kept,
                committed - 1,
            )
        elif kept < end:
            log.info("replica truncated partition=%s from=%d to=%d", partition, kept, end - 1)

    def start_over(self, partition: Partition, offset: int) -> None:
        """Empties the log, which has nothing in common with the leader's; it continues at `offset`."""
        self.directory_of(partition).start_over(partition.log, offset)
        partition.log_shortened()

    def follow_log_start(self, partition: Partition, offset: int, then: Callable[[], None]) -> None:
        """Deletes what the leader has deleted; then calls `then`."""

        def started() -> None:
            # What was deleted was committed, though this replica may not have been told, and may lead by now.
            partition.log_shortened()
            then()

        self.directory_of(partition).delete_records(partition.topic, partition.index, offset, started)

    def drop_expired(self, partition: Partition, more: Callable[[], None]) -> None:
        """Drops segments that the topic's retention settings no longer keep; calls `more` if that was not all."""
        directory = self._hosted.directory_of.get(partition)
        if directory is not None:
            directory.drop_expired(partition.topic, partition.index, partition.high_watermark, more)

    def check(self, partition: Partition, check: ReadCheck, then: Callable[[], None]) -> None:
        """Checks a part of the partition's log in a job, before it is read for the first time; see `Log.read`."""
        directory = self._hosted.directory_of.get(partition)
        if directory is None:
            # It went offline after it was read; the next read returns that error.
            then()
        else:
            directory.checker.check(check, then)

    def find_offset(
        self, partition: Partition, timestamp: int, committed_only: bool
    ) -> FoundOffset | Pending[OffsetSearchResult] | None:
        """As `Partition.find_offset`; a search that takes long runs in a job."""
        return offset_search.find_offset(self._hosted, partition, timestamp, committed_only)
