"""Applies committed metadata to the partitions on this node: topics deleted or created, roles, settings.

A delta may have several changes of a partition: of its leader, its ISR, its settings, and the cluster's settings that
it inherits. Leaders count replicas when they know all of these. With a new ISR and the minimum from before, or a new
minimum and a role that has ended, they would commit what the next leader does not have.
"""

from quire.config.broker_config import BrokerConfig
from quire.metadata.delta import ImageDelta
from quire.metadata.image import TOPIC, ClusterImage, TopicImage
from quire.node.partitions.hosted import HostedPartitions
from quire.node.partitions.opening import PartitionOpener, TopicSettings, assign_role
from quire.protocol.errors import ErrorCode
from quire.replication.partition import Partition


class MetadataUpdates:
    __slots__ = ("_broker_settings_changed", "_has_started", "_hosted", "_opener")

    def __init__(self, config: BrokerConfig, hosted: HostedPartitions, opener: PartitionOpener) -> None:
        self._hosted = hosted
        self._opener = opener
        self._has_started = False
        self._broker_settings_changed = False
        """Since the last delta, by this one: topics may inherit them."""
        config.when_changed(self._note_broker_settings)

    def _note_broker_settings(self, _changed: list[str]) -> None:
        self._broker_settings_changed = True

    def apply(self, image: ClusterImage, delta: ImageDelta) -> None:
        self._hosted.image = image
        for topic in delta.removed_topics.values():
            for index in topic.partitions:
                self.remove(topic, index)
        reconfigured = self._reconfigure(image, delta)
        # At the start the logs are open already. A snapshot that comes later may bring many new ones.
        openings_left = self._opener.openings_now if self._has_started else None
        self._has_started = True
        for topic_id, changed in delta.partitions.items():
            present = image.topic_by_id(topic_id)
            if present is not None:
                openings_left = self._update(present, list(changed), openings_left)
        for partition in reconfigured:
            partition.settings_changed()

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

    def _reconfigure(self, image: ClusterImage, delta: ImageDelta) -> list[Partition]:
        """Gives open partitions their new settings; returns those whose leaders have to count again."""
        names = [resource.name for resource in delta.configs if resource.type == TOPIC]
        if self._broker_settings_changed:
            self._broker_settings_changed = False
            names = list(image.topics_by_name)
        reconfigured: list[Partition] = []
        for name in names:
            topic = image.topic(name)
            if topic is None:
                continue
            settings, log_settings = self._opener.settings_of(name)
            for index in topic.partitions:
                partition = self._hosted.by_id.get((topic.topic_id, index))
                if partition is not None:
                    self._opener.configure(partition.log, log_settings, self._hosted.directory_of[partition])
                    partition.settings = settings
                    reconfigured.append(partition)
        return reconfigured
