"""The partitions on this node: found for every request, and kept as the metadata log says.

`apply` hears of each committed change and opens, changes or deletes logs accordingly; `leader` is what handlers ask.
A partition whose log cannot be opened is missing here, and its clients get KAFKA_STORAGE_ERROR; the others serve on.
"""

import logging
from collections.abc import Callable, Iterable, Iterator

from quire.config.broker_config import BrokerConfig
from quire.config.topic_config import TopicConfig
from quire.metadata.delta import ImageDelta
from quire.metadata.image import TOPIC, ClusterImage, TopicImage
from quire.node.log_deletions import LogDeletions
from quire.node.topic_settings import log_config, partition_settings
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.uuids import ZERO
from quire.replication.partition import Found, Partition
from quire.replication.settings import PartitionSettings
from quire.seams import Clock
from quire.storage import Log, LogConfig
from quire.storage.flush_schedule import FlushSchedule
from quire.storage.log_directory import LogDirectory
from quire.storage.range_check import RangeCheck
from quire.storage.time_search import LongSearchError, TimeSearch
from quire.storage.turns import Turns

_AT_ONCE = 8
_TURN_MS = 5.0
"""How many logs are created or deleted, and for how long about, before others get their turn."""

_OPENED_AGAIN_AFTER_MS = 1_000.0
"""How long those are refused at once who ask for a log that could not be opened a moment ago."""

log = logging.getLogger("quire.partitions")

Answer = Found | ApiError | None
"""Of a search for an offset: where it is, that it is nowhere, or why nobody knows."""


class Partitions:
    __slots__ = (
        "_by_id",
        "_by_name",
        "_clock",
        "_config",
        "_directories",
        "_directory_of",
        "_flush_schedule",
        "_high_watermarks",
        "_image",
        "_node_id",
        "_offline",
        "_to_flush",
        "_to_open",
        "_to_wake",
        "_turns",
        "_unopened",
        "deletions",
    )

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self._config = config
        self._node_id = config.node_id
        self._directories: list[LogDirectory] = []
        self._high_watermarks: dict[tuple[str, int], int] = {}
        """As the last run left them, for partitions that are not open yet."""
        self._clock = clock
        self._image = ClusterImage()
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._by_id: dict[tuple[bytes, int], Partition] = {}
        self._directory_of: dict[Partition, LogDirectory] = {}
        self._offline: dict[tuple[bytes, int], None] = {}
        """Partitions whose logs are, or may be, in a directory that failed: an empty log must not take their place."""
        self._unopened: dict[tuple[bytes, int], float] = {}
        """Partitions whose logs could not be opened though their directory works, most likely for want of room, and
        when that is tried again at the earliest: by whoever asks for one, or else after a while."""
        self._to_open: dict[tuple[bytes, int], None] = {}
        """Partitions whose logs will be begun in a while, or when somebody asks for them."""
        self._turns = Turns(clock, _AT_ONCE, _TURN_MS)
        self.deletions = LogDeletions(self._turns)
        self._to_flush: dict[Partition, None] = {}
        self._to_wake: dict[Partition, None] = {}
        self._flush_schedule = FlushSchedule(clock, config.get_int("log.flush.scheduler.interval.ms"))
        config.when_changed(lambda _changed: self._refresh_settings())

    def __iter__(self) -> Iterator[Partition]:
        # A copy: whatever is done with one of them, its disk may fail at it, which takes others out.
        return iter(list(self._by_name.values()))

    def __len__(self) -> int:
        return len(self._by_name)

    def use(self, directories: list[LogDirectory]) -> None:
        """The directories in which partitions are and will be."""
        self._directories = directories
        for directory in directories:
            self._high_watermarks.update(directory.read_high_watermarks())

    # Finding

    def leader(self, topic: str, topic_id: bytes | None, index: int) -> Partition:
        """The partition by its topic's id, or where there is none by name; ApiError says why it cannot serve."""
        if topic_id is not None and topic_id != ZERO:
            partition = self._by_id.get((topic_id, index))
        else:
            partition = self._by_name.get((topic, index))
        if partition is None and (self._to_open or self._unopened):
            partition = self._open_asked_for(self._image_of(topic, topic_id), index)
        if partition is None or not partition.is_leader:
            raise self._why_missing(topic, topic_id, index)
        return partition

    def check_opened(self, wanted: Iterable[tuple[str, bytes | None, int]]) -> None:
        """For what cannot work in slices: ApiError if it asks for many partitions whose logs are not created yet."""
        left = _AT_ONCE
        for topic, topic_id, index in wanted if self._to_open else ():
            found = self._image_of(topic, topic_id)
            left -= found is not None and (found.topic_id, index) in self._to_open
            if left < 0:
                raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the logs of a new topic are being created: try again")

    def current_leader(self, topic: str, topic_id: bytes | None, index: int) -> tuple[int, int]:
        """Node id and epoch of the partition's leader, (-1, -1) where there is none."""
        found = self._image_of(topic, topic_id)
        partition = found.partitions.get(index) if found is not None else None
        return (-1, -1) if partition is None else (partition.leader, partition.leader_epoch)

    def of_topic(self, name: str) -> list[Partition]:
        topic = self._image.topic(name)
        indexes = topic.partitions if topic is not None else ()
        return [partition for index in indexes if (partition := self._by_name.get((name, index))) is not None]

    def directories(self) -> list[LogDirectory]:
        return self._directories

    def directory_of(self, partition: Partition) -> LogDirectory:
        return self._directory_of[partition]

    def in_directory(self, directory: LogDirectory) -> list[Partition]:
        held = [partition for partition in self if self._directory_of[partition] is directory]
        return sorted(held, key=lambda partition: (partition.topic, partition.index))

    def _image_of(self, topic: str, topic_id: bytes | None) -> TopicImage | None:
        if topic_id is not None and topic_id != ZERO:
            return self._image.topic_by_id(topic_id)
        return self._image.topic(topic)

    def _why_missing(self, topic: str, topic_id: bytes | None, index: int) -> ApiError:
        found = self._image_of(topic, topic_id)
        if found is None and topic_id is not None and topic_id != ZERO:
            return ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
        if found is None or index not in found.partitions:
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {index} of topic {topic}")
        if found.partitions[index].leader != self._node_id:
            return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"another node leads {found.name}-{index}")
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log of {found.name}-{index} is offline")

    # Following the metadata

    def apply(self, image: ClusterImage, delta: ImageDelta) -> None:
        self._image = image
        if delta.is_snapshot and any(each.failure is not None or each.is_new for each in self._directories):
            self._take_missing_for_offline(image)
        for topic in delta.removed_topics.values():
            for index in topic.partitions:
                self._remove(topic, index)
        most = None if delta.is_snapshot else _AT_ONCE
        for topic_id, changed in delta.partitions.items():
            present = image.topic_by_id(topic_id)
            if present is not None:
                most = self._put(present, list(changed), most)
        for resource in delta.configs:
            if resource.type == TOPIC:
                self._refresh_topic(resource.name)

    def set_strays_aside(self) -> None:
        """Logs of topics that the metadata does not know are kept, out of the way, and said aloud."""
        for directory in self._directories:
            for topic, index in list(directory.logs):
                partition = self._by_name.get((topic, index))
                in_use = partition is not None and self._directory_of.get(partition) is directory
                if not in_use and directory.failure is None:
                    self._set_aside(directory, topic, index)

    def _set_aside(self, directory: LogDirectory, topic: str, index: int) -> None:
        try:
            folder = directory.set_aside(topic, index)
        except ApiError as error:
            log.error("%s-%d is of a topic that is gone, and could not be set aside: %s", topic, index, error.message)
            return
        log.warning(
            "%s-%d is of a topic that is gone; its data is kept in %s until you remove it", topic, index, folder
        )

    def _put(self, topic: TopicImage, indexes: list[int], most: int | None = None) -> int | None:
        """Makes partitions what the metadata says. No more than `most` logs are opened now, the others later.

        Returns what is left of `most`.
        """
        settings: tuple[PartitionSettings, LogConfig] | None = None
        for index in indexes:
            image = topic.partitions[index]
            if self._node_id not in image.replicas:
                continue
            if (topic.topic_id, index) in self._offline:
                continue
            partition = self._by_id.get((topic.topic_id, index))
            if partition is None and most == 0:
                self._open_later(topic.topic_id, index)
                continue
            if partition is None:
                settings = settings or self._settings(topic.name)
                partition = self._open(topic, index, *settings)
                most = most - 1 if most is not None else None
            if partition is None:
                continue
            if image.leader == self._node_id:
                partition.become_leader(image.leader_epoch, image.isr)
            elif partition.is_leader:
                partition.resign()
        return most

    def _settings(self, topic: str) -> tuple[PartitionSettings, LogConfig]:
        config = TopicConfig(self._image.topic_configs(topic), self._config)
        return partition_settings(config), log_config(config)

    def _open_later(self, topic_id: bytes, index: int) -> None:
        """Creating a log takes a few files: thousands of them at once would keep everybody waiting.

        Nobody sees a difference, because whoever asks for one of them before its turn gets it. A crash before that
        leaves a partition without a log, as one in the middle of creating them would: the next start begins it.
        """

        def open_now() -> None:
            self._open_asked_for(self._image.topic_by_id(topic_id), index)

        self._to_open[topic_id, index] = None
        self._turns.add(open_now)

    def _open_asked_for(self, topic: TopicImage | None, index: int) -> Partition | None:
        if topic is None or not self._may_open(topic.topic_id, index):
            return None
        self._to_open.pop((topic.topic_id, index), None)
        self._put(topic, [index])
        return self._by_id.get((topic.topic_id, index))

    def _may_open(self, topic_id: bytes, index: int) -> bool:
        again_ms = self._unopened.get((topic_id, index))
        if again_ms is not None:
            return self._clock.monotonic_ms() >= again_ms
        return (topic_id, index) in self._to_open

    def _take_missing_for_offline(self, image: ClusterImage) -> None:
        """At a start with a directory that failed, or was empty, nobody can tell which partitions are in there."""
        found = {key for directory in self._directories if directory.failure is None for key in directory.logs}
        missing = [
            (topic, index)
            for topic in image.topics_by_name.values()
            for index in topic.partitions
            if (topic.name, index) not in found
        ]
        for topic, index in missing:
            self._offline[topic.topic_id, index] = None
        for directory in self._directories:
            if missing and directory.is_new:
                log.error(
                    "%s was empty, and %d partitions, %s-%d first, are in no directory: they are offline, and begin "
                    "anew with the next start; if a disk is not mounted, mount it before",
                    directory.path,
                    len(missing),
                    missing[0][0].name,
                    missing[0][1],
                )

    def _open(
        self, topic: TopicImage, index: int, settings: PartitionSettings, log_settings: LogConfig
    ) -> Partition | None:
        key = (topic.name, index)
        self.deletions.delete_now(key)
        directory = self._directory_for(key, topic.topic_id)
        if directory is None:
            return None
        if directory.failure is not None:
            self._offline[topic.topic_id, index] = None
            return None
        try:
            opened = directory.open_log(topic.name, index, log_settings, topic_id=topic.topic_id)
            self._configure(opened, log_settings, directory)
            directory.flush_before_use(opened)
        except ApiError as error:
            if (topic.topic_id, index) not in self._unopened:
                log.error("%s-%d is offline: %s", topic.name, index, error.message)
            self._unopened[topic.topic_id, index] = self._clock.monotonic_ms() + _OPENED_AGAIN_AFTER_MS
            return None
        self._unopened.pop((topic.topic_id, index), None)
        partition = Partition(
            topic.name,
            topic.topic_id,
            index,
            self._node_id,
            opened,
            settings,
            self._wake_soon,
            self._flush_soon,
            self._storage_failed,
            self._high_watermarks.pop(key, 0),
        )
        self._by_name[key] = partition
        self._by_id[topic.topic_id, index] = partition
        self._directory_of[partition] = directory
        return partition

    def _directory_for(self, key: tuple[str, int], topic_id: bytes) -> LogDirectory | None:
        """Where the partition's log is, even if that has failed, or the emptiest working directory for a new one.

        A log of the same name with another topic's id is what is left of another topic, and is put out of the way.
        """
        for directory in self._directories:
            if key in directory.logs:
                if directory.topic_ids[key] in (None, topic_id):
                    return directory
                if directory.failure is None:
                    self._set_aside(directory, *key)
            elif key in directory.unopened:
                return directory
        working = [directory for directory in self._directories if directory.failure is None]
        return min(working, key=lambda directory: len(directory.logs), default=None)

    def _remove(self, topic: TopicImage, index: int) -> None:
        self._offline.pop((topic.topic_id, index), None)
        self._unopened.pop((topic.topic_id, index), None)
        self._to_open.pop((topic.topic_id, index), None)
        partition = self._by_id.pop((topic.topic_id, index), None)
        if partition is None:
            return
        del self._by_name[topic.name, index]
        directory = self._directory_of.pop(partition)
        self._to_flush.pop(partition, None)
        self._to_wake.pop(partition, None)
        partition.resign(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self.deletions.add((topic.name, index), directory, partition.log)

    def _refresh_topic(self, name: str) -> None:
        topic = self._image.topic(name)
        if topic is None:
            return
        settings, log_settings = self._settings(name)
        for index in topic.partitions:
            partition = self._by_id.get((topic.topic_id, index))
            if partition is not None:
                self._configure(partition.log, log_settings, self._directory_of[partition])
                partition.change_settings(settings)

    def _configure(self, held: Log, config: LogConfig, directory: LogDirectory) -> None:
        held.config = config
        self._flush_schedule.watch(held, directory.flush)

    def _refresh_settings(self) -> None:
        """A broker setting changed that topics may inherit."""
        for name in self._image.topics_by_name:
            self._refresh_topic(name)

    def delete_records(self, partition: Partition, offset: int) -> Pending[int]:
        """Lets the partition start at `offset` (-1: the high watermark); becomes where it then starts.

        ApiError when that is not allowed. Stays pending when the disk fails first, or the partition is deleted.
        """
        started: Pending[int] = Pending()
        target = partition.deletion_target(offset)
        if target == partition.log_start_offset:
            started.complete(target)
        else:
            directory = self._directory_of[partition]
            directory.delete_records(
                partition.topic, partition.index, target, lambda: started.complete(partition.log_start_offset)
            )
        return started

    def drop_expired(self, partition: Partition, more: Callable[[], None]) -> None:
        """Lets go of what the topic's retention settings want to be gone; `more` is called if that was not all."""
        directory = self._directory_of.get(partition)
        if directory is not None:
            directory.drop_expired(partition.topic, partition.index, partition.high_watermark, more)

    def check(self, partition: Partition, check: RangeCheck, then: Callable[[], None]) -> None:
        """Has a part of the partition's log checked before it is read for the first time; see `Log.read`."""
        directory = self._directory_of.get(partition)
        if directory is None:
            # Offline since it was read, a moment ago: whoever reads again hears of that.
            then()
        else:
            directory.checker.check(check, then)

    def find_offset(self, partition: Partition, timestamp: int, committed_only: bool) -> Found | Pending[Answer] | None:
        """As `Partition.find_offset`; what takes long comes later, or else why it could not be found."""
        try:
            return partition.find_offset(timestamp, committed_only)
        except LongSearchError as error:
            later: Pending[Answer] = Pending()
            self._search(partition, timestamp, committed_only, error.search, later.complete_once)
            return later

    def _search(
        self,
        partition: Partition,
        timestamp: int,
        committed_only: bool,
        search: TimeSearch,
        answer: Callable[[Answer], object],
    ) -> None:
        def searched(search: TimeSearch | None) -> None:
            if partition not in self._directory_of:
                answer(self._why_missing(partition.topic, None, partition.index))
                return
            try:
                answer(partition.find_offset(timestamp, committed_only, search))
            except LongSearchError as error:
                self._search(partition, timestamp, committed_only, error.search, answer)
            except ApiError as error:
                answer(error)

        self._directory_of[partition].searcher.search(search, searched, answer)

    # Waking whoever waits

    def _wake_soon(self, partition: Partition) -> None:
        if not self._to_wake:
            self._clock.call_soon(self._wake)
        self._to_wake[partition] = None

    def _wake(self) -> None:
        waking, self._to_wake = self._to_wake, {}
        for partition in waking:
            try:
                partition.wake_fetch_waits()
            except Exception:
                # Whoever was to be woken by the others must not suffer for it.
                log.exception("waking those who wait for %s failed", partition)

    # The disks

    def failed_directory_ids(self) -> list[bytes]:
        return [directory.meta.directory_id for directory in self._directories if directory.failure and directory.meta]

    def _flush_soon(self, partition: Partition) -> None:
        """Not before everything that has come by now is dealt with: it shares the flush."""
        if not self._to_flush:
            self._clock.call_soon(self._flush)
        self._to_flush[partition] = None

    def _flush(self) -> None:
        flushing, self._to_flush = self._to_flush, {}
        for partition in flushing:
            # It may be gone by now, or the node stopping.
            directory = self._directory_of.get(partition)
            if directory is not None and not partition.log.closed:
                directory.flush(partition.log, partition.flushed, partition.flush_failed)

    def checkpoint(self) -> None:
        for directory in self._directories:
            directory.checkpoint()
        for partition in self:
            partition.flush_again()
        for topic_id, index in list(self._unopened):
            topic = self._image.topic_by_id(topic_id)
            if topic is not None:
                self._put(topic, [index])

    def checkpoint_high_watermarks(self) -> None:
        for directory in self._directories:
            directory.checkpoint_high_watermarks(
                {(held.topic, held.index): held.high_watermark for held in self.in_directory(directory)}
            )

    def _storage_failed(self, partition: Partition, error: OSError) -> None:
        self._directory_of[partition].fail(error)

    def directory_failed(self, directory: LogDirectory) -> None:
        """Takes the partitions of a failed directory out of service; their clients hear of it at once."""
        for partition in self.in_directory(directory):
            del self._by_name[partition.topic, partition.index]
            del self._by_id[partition.topic_id, partition.index]
            del self._directory_of[partition]
            self._offline[partition.topic_id, partition.index] = None
            partition.resign(ErrorCode.KAFKA_STORAGE_ERROR)
