"""Applies committed metadata to the partitions on this node: topics deleted or created, roles, settings."""

from quire.config.broker_config import BrokerConfig
from quire.metadata.delta import ImageDelta
from quire.metadata.image import TOPIC, ClusterImage, TopicImage
from quire.node.partitions.hosted import HostedPartitions
from quire.node.partitions.opening import PartitionOpener, TopicSettings, assign_role
from quire.protocol.errors import ErrorCode


class MetadataUpdates:
    __slots__ = ("_has_started", "_hosted", "_opener")

    def __init__(self, config: BrokerConfig, hosted: HostedPartitions, opener: PartitionOpener) -> None:
        self._hosted = hosted
        self._opener = opener
        self._has_started = False
        config.when_changed(lambda _changed: self._refresh_all_topics())

    def apply(self, image: ClusterImage, delta: ImageDelta) -> None:
        self._hosted.image = image
        for topic in delta.removed_topics.values():
            for index in topic.partitions:
                self.remove(topic, index)
        # At the start the logs are open already. A snapshot that comes later may bring many new ones.
        openings_left = self._opener.openings_now if self._has_started else None
        self._has_started = True
        for topic_id, changed in delta.partitions.items():
            present = image.topic_by_id(topic_id)
            if present is not None:
                openings_left = self._update(present, list(changed), openings_left)
        for resource in delta.configs:
            if resource.type == TOPIC:
                self._refresh_topic(resource.name)

    def _update(self, topic: TopicImage, indexes: list[int], openings_left: int | None) -> int | None:
        """Assigns partitions their roles and opens those that are not open, at most `openings_left` of them now.

        Returns what is left of `openings_left`. None means no limit.
        """
        opener = self._opener
        settings: TopicSettings | None = None
        for index in indexes:
            partition = self._hosted.by_id.get((topic.topic_id, index))
            if not opener.is_replica(topic, index):
                self.remove(topic, index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
                continue
            if not opener.may_open(topic, index):
                continue
            if partition is not None:
                assign_role(partition, topic.partitions[index])
            elif openings_left == 0:
                opener.postpone(topic.topic_id, index)
            else:
                settings = settings or opener.settings_of(topic.name)
                opener.open(topic, index, settings)
                openings_left = openings_left - 1 if openings_left is not None else None
        return openings_left

    def remove(self, topic: TopicImage, index: int, code: ErrorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) -> None:
        """The topic is deleted or the partition is no longer on this node, and the partition's log is deleted."""
        self._opener.forget(topic.topic_id, index)
        partition = self._hosted.by_id.get((topic.topic_id, index))
        if partition is None:
            return
        directory = self._hosted.remove(partition)
        partition.leave_role(code)
        self._opener.deletions.add((topic.name, index), directory, partition.log)

    def _refresh_topic(self, name: str) -> None:
        topic = self._hosted.image.topic(name)
        if topic is None:
            return
        settings, log_settings = self._opener.settings_of(name)
        for index in topic.partitions:
            partition = self._hosted.by_id.get((topic.topic_id, index))
            if partition is not None:
                self._opener.configure(partition.log, log_settings, self._hosted.directory_of[partition])
                partition.change_settings(settings)

    def _refresh_all_topics(self) -> None:
        """A broker setting has changed that topics may inherit."""
        for name in self._hosted.image.topics_by_name:
            self._refresh_topic(name)
