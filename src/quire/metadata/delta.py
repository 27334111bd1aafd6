"""What changed between two images, so that publishers need not compare them.

Dictionaries are used as sets: they keep the order of the changes, so that a run of the simulator repeats exactly.
"""

from dataclasses import dataclass, field

from quire.metadata.image import ClusterImage, ConfigResource, TopicImage


@dataclass(slots=True)
class ImageDelta:
    """Names of what changed; the image has the new values. A removed topic is kept as it last was."""

    is_snapshot: bool = False
    """Whether a whole image replaced the last one: everything in it counts as changed."""
    partitions: dict[bytes, dict[int, None]] = field(default_factory=dict)
    """Created or changed partitions, by topic id."""
    created_topics: dict[bytes, None] = field(default_factory=dict)
    removed_topics: dict[bytes, TopicImage] = field(default_factory=dict)
    configs: dict[ConfigResource, None] = field(default_factory=dict)
    brokers: dict[int, None] = field(default_factory=dict)
    controllers: dict[int, None] = field(default_factory=dict)
    features: dict[str, None] = field(default_factory=dict)
    producer_ids: bool = False
    security: bool = False
    """Quotas, ACLs, credentials or tokens."""

    @property
    def is_empty(self) -> bool:
        return self == ImageDelta()

    def partition_changed(self, topic_id: bytes, partition: int) -> None:
        self.partitions.setdefault(topic_id, {})[partition] = None

    def topic_removed(self, topic: TopicImage, resource: ConfigResource) -> None:
        """A topic that was created and deleted between two publications is only in the removed ones.

        Its settings count as changed: another topic may have taken the name since.
        """
        self.created_topics.pop(topic.topic_id, None)
        self.partitions.pop(topic.topic_id, None)
        self.configs[resource] = None
        self.removed_topics[topic.topic_id] = topic

    @classmethod
    def of_everything(cls, image: ClusterImage, before: ClusterImage) -> "ImageDelta":
        """The delta of an image that replaces `before` as a whole."""
        delta = cls(is_snapshot=True, producer_ids=True, security=True)
        for topic in image.topics_by_name.values():
            delta.created_topics[topic.topic_id] = None
            for partition in topic.partitions:
                delta.partition_changed(topic.topic_id, partition)
        for topic_id, topic in before.topics_by_id.items():
            if topic_id not in image.topics_by_id:
                delta.removed_topics[topic_id] = topic
        for side in (image, before):
            delta.configs.update(dict.fromkeys(side.configs))
            delta.brokers.update(dict.fromkeys(side.brokers))
            delta.controllers.update(dict.fromkeys(side.controllers))
            delta.features.update(dict.fromkeys(side.features))
        return delta
