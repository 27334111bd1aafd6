"""Opens and creates the logs of partitions, and takes partitions offline whose logs cannot be used.

A partition without an open log is not in the table; its clients get KAFKA_STORAGE_ERROR, and other partitions are not
affected. There are three reasons for that:

    offline    its data directory has failed, or may be the one that has the log: it stays offline until a restart
    unopened   the directory works but the log could not be opened, most likely for lack of space: tried again, at the
               next checkpoint or on a request
    postponed  the log of a new topic is created when the node has answered who created it, or on a request
"""

import logging
from collections.abc import Mapping
from functools import partial

from quire.config.broker_config import BrokerConfig
from quire.config.topic_config import TopicConfig
from quire.metadata.image import ClusterImage, PartitionImage, TopicImage
from quire.metadata.partition_image import RECOVERING
from quire.node.partitions.hosted import HostedPartitions, PartitionId
from quire.node.partitions.log_deletions import LogDeletions
from quire.node.partitions.log_placement import directory_for
from quire.node.topic_settings import log_config, partition_settings
from quire.protocol.errors import ApiError, ErrorCode
from quire.replication.members import Members
from quire.replication.partition import Partition
from quire.replication.partition_owner import PartitionOwner
from quire.replication.settings import PartitionSettings
from quire.seams import Clock
from quire.storage import Log, LogConfig
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.flushing.flush_schedule import FlushSchedule
from quire.turns import Turns

LOGS_PER_TURN = 8
_TURN_MS = 5.0
"""How many logs are created or deleted, and for about how long, before other requests are served."""

QUIET_MS = 100.0
LONGEST_WAIT_MS = 1_000.0
"""New logs are created when no other partition was postponed for `QUIET_MS`, or the first has waited for the longer
time. To create a log can take milliseconds, and the request that created the topics is to be answered before."""

FEW_LOGS = 64
FEW_QUIET_MS = 10.0
"""So few are created sooner: those of an internal topic, for example, whose first write waits for all its replicas."""

_RETRY_AFTER_MS = 1_000.0
"""After a log could not be opened, requests for it are refused for this long without another attempt."""

TopicSettings = tuple[PartitionSettings, LogConfig]

log = logging.getLogger("quire.partitions")


class PartitionOpener:
    __slots__ = (
        "_clock",
        "_config",
        "_flush_schedule",
        "_high_watermarks",
        "_hosted",
        "_node_id",
        "_offline",
        "_owner",
        "_turns",
        "_waiting",
        "_waiting_since_ms",
        "_waits_until_ms",
        "deletions",
        "postponed",
        "unopened",
        "wishes",
    )

    def __init__(self, config: BrokerConfig, clock: Clock, hosted: HostedPartitions, owner: PartitionOwner) -> None:
        self._config = config
        self._node_id = config.node_id
        self._clock = clock
        self._hosted = hosted
        self._owner = owner
        self._high_watermarks: dict[LogDirectory, dict[tuple[str, int], int]] = {}
        """As the last run left them, for partitions that are not open yet. A directory may have one of a log that has
        moved to another since, which may have been truncated there."""
        self.wishes: dict[tuple[str, int], LogDirectory] = {}
        """Where the logs of partitions that do not exist yet are to be created."""
        self._offline: dict[PartitionId, LogDirectory | None] = {}
        """An empty log must not take the place of one of these. With the directory that has it, if that is known."""
        self.unopened: dict[PartitionId, float] = {}
        """With the time before which a request does not try again."""
        self.postponed: dict[PartitionId, None] = {}
        self._waiting: list[PartitionId] = []
        """Postponed partitions that are not in the queue for a turn yet."""
        self._waiting_since_ms = 0.0
        self._waits_until_ms = 0.0
        self._turns = Turns(clock, LOGS_PER_TURN, _TURN_MS)
        self.deletions = LogDeletions(self._turns)
        self._flush_schedule = FlushSchedule(clock, config.get_int("log.flush.scheduler.interval.ms"))

    def read_high_watermarks(self) -> None:
        for directory in self._hosted.directories:
            self._high_watermarks[directory] = directory.read_high_watermarks()

    # --- Opening

    def is_replica(self, topic: TopicImage, index: int) -> bool:
        return self._node_id in topic.partitions[index].replicas

    def may_open(self, topic: TopicImage, index: int) -> bool:
        """Whether this node is a replica of the partition and the partition is not offline."""
        return self.is_replica(topic, index) and not self.is_offline(topic.topic_id, index)

    def is_offline(self, topic_id: bytes, index: int) -> bool:
        return (topic_id, index) in self._offline

    def open(self, topic: TopicImage, index: int, settings: TopicSettings) -> Partition | None:
        """Opens the partition's log, or creates it, and assigns the partition its role; None if that fails."""
        key = (topic.name, index)
        self.deletions.delete_now(key)
        directory = directory_for(self._hosted.directories, key, topic.topic_id, self.wishes.get(key))
        if directory is None:
            return None
        if directory.failure is not None:
            self._offline[topic.topic_id, index] = directory
            return None
        partition_config, log_settings = settings
        try:
            opened = directory.open_log(topic.name, index, log_settings, topic_id=topic.topic_id)
            self.configure(opened, log_settings, directory)
            directory.flush_before_use(opened)
        except ApiError as error:
            if (topic.topic_id, index) not in self.unopened:
                log.error("%s-%d is offline: %s", topic.name, index, error.message)
            self.unopened[topic.topic_id, index] = self._clock.monotonic_ms() + _RETRY_AFTER_MS
            return None
        self.unopened.pop((topic.topic_id, index), None)
        high_watermark = self._high_watermarks.get(directory, {}).pop(key, 0)
        self.wishes.pop(key, None)
        partition = Partition(
            topic.name, topic.topic_id, index, self._node_id, opened, partition_config, self._owner, high_watermark
        )
        self._hosted.add(partition, directory)
        assign_role(partition, topic.partitions[index])
        return partition

    @property
    def openings_now(self) -> int:
        """How many new logs are created at once: those of a small topic, none while others are postponed."""
        return 0 if self.postponed else LOGS_PER_TURN

    def postpone(self, topic_id: bytes, index: int) -> None:
        """Creates the log a little later: it takes a few files, and thousands at once would block the event loop.

        Clients see no difference, because a request opens its partition at once. A crash before that leaves a partition
        without a log, as a crash during the creation of many logs would; the next start creates it.
        """
        now_ms = self._clock.monotonic_ms()
        if not self._waiting:
            self._waiting_since_ms = now_ms
            self._clock.call_later(FEW_QUIET_MS, self._open_when_quiet)
        self.postponed[topic_id, index] = None
        self._waiting.append((topic_id, index))
        quiet_ms = FEW_QUIET_MS if len(self._waiting) <= FEW_LOGS else QUIET_MS
        self._waits_until_ms = min(now_ms + quiet_ms, self._waiting_since_ms + LONGEST_WAIT_MS)

    def _open_when_quiet(self) -> None:
        left_ms = self._waits_until_ms - self._clock.monotonic_ms()
        if self._waiting and left_ms > 0:
            self._clock.call_later(left_ms, self._open_when_quiet)
        else:
            self.open_soon()

    def open_soon(self) -> None:
        """Creates the postponed logs in the next turns, because they are needed."""
        waiting, self._waiting = self._waiting, []
        for key in waiting:
            self._turns.add(partial(self._open_postponed, *key))

    def _open_postponed(self, topic_id: bytes, index: int) -> None:
        self.open_on_demand(self._hosted.image.topic_by_id(topic_id), index)

    def open_on_demand(self, topic: TopicImage | None, index: int) -> Partition | None:
        """Opens a postponed or unopened partition that a request needs; None if it is neither, or still fails."""
        if topic is None or not self._is_due(topic.topic_id, index):
            return None
        self.postponed.pop((topic.topic_id, index), None)
        if not self.may_open(topic, index):
            return None
        return self.open(topic, index, self.settings_of(topic.name))

    def _is_due(self, topic_id: bytes, index: int) -> bool:
        retry_ms = self.unopened.get((topic_id, index))
        if retry_ms is not None:
            return self._clock.monotonic_ms() >= retry_ms
        return (topic_id, index) in self.postponed

    def retry_unopened(self) -> None:
        for topic_id, index in list(self.unopened):
            topic = self._hosted.image.topic_by_id(topic_id)
            if topic is not None and self.may_open(topic, index):
                self.open(topic, index, self.settings_of(topic.name))

    def settings_of(self, topic: str) -> TopicSettings:
        config = TopicConfig(self._hosted.image.topic_configs(topic), self._config)
        return partition_settings(config), log_config(config)

    def configure(self, held: Log, config: LogConfig, directory: LogDirectory) -> None:
        held.config = config
        self._flush_schedule.watch(held, directory.flush)

    # --- Taking offline

    def take_offline(self, directory: LogDirectory) -> None:
        """Takes the partitions of a failed directory out of service. Waiting requests are answered at once."""
        for partition in self._hosted.in_directory(directory):
            self._hosted.remove(partition)
            self._offline[partition.topic_id, partition.index] = directory
            partition.leave_role(ErrorCode.KAFKA_STORAGE_ERROR)

    def offline_directory(self, topic_id: bytes, index: int) -> LogDirectory | None:
        """The failed directory that has the partition's log; None if it is not offline, or that is not known."""
        return self._offline.get((topic_id, index))

    def take_missing_offline(self, image: ClusterImage) -> None:
        """Takes partitions without a log offline, at a start with a directory that has failed or is unexpectedly empty.

        Any of them may be in that directory.
        """
        directories = self._hosted.directories
        if all(directory.failure is None and not directory.is_new for directory in directories):
            return
        found = {key for directory in directories if directory.failure is None for key in directory.logs}
        missing = [
            (topic, index)
            for topic in image.topics_by_name.values()
            for index, partition in topic.partitions.items()
            if self._node_id in partition.replicas and (topic.name, index) not in found
        ]
        for topic, index in missing:
            self._offline[topic.topic_id, index] = None
        for directory in directories:
            if missing and directory.is_new:
                log.error(
                    "%s was empty, and %d partitions, %s-%d first, are in no directory: they are offline, and the next "
                    "start creates them empty; if a disk is not mounted, mount it before",
                    directory.path,
                    len(missing),
                    missing[0][0].name,
                    missing[0][1],
                )

    def take_undecided_offline(self, undecided: Mapping[tuple[str, int], LogDirectory], image: ClusterImage) -> None:
        """Takes partitions offline whose log may be outdated, because another directory may have a newer one."""
        self._hosted.undecided = set(undecided)
        for (name, index), directory in undecided.items():
            topic = image.topic(name)
            if topic is not None:
                self._offline[topic.topic_id, index] = directory

    def forget(self, topic_id: bytes, index: int) -> None:
        """The topic is deleted: its partition is no longer opened."""
        self._offline.pop((topic_id, index), None)
        self.unopened.pop((topic_id, index), None)
        self.postponed.pop((topic_id, index), None)


def assign_role(partition: Partition, image: PartitionImage) -> None:
    """Makes this node the partition's leader or follower, as the metadata says."""
    if image.leader == partition.node_id:
        if image.leader_recovery_state == RECOVERING and image.leader_epoch > partition.leader_epoch:
            log.warning(
                "leader elected unclean partition=%s epoch=%d end=%d: what was acknowledged beyond that is lost",
                partition,
                image.leader_epoch,
                partition.log.end_offset,
            )
        members = Members(image.replicas, image.isr, image.partition_epoch)
        partition.become_leader(image.leader_epoch, members)
    elif image.has_leader:
        partition.become_follower(image.leader, image.leader_epoch)
    else:
        partition.leave_role()
