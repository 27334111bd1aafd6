"""ClusterImage: everything the metadata log says, up to one offset.

Records change it in place (`replay.py`). Only the event loop uses it, so readers need no lock and no copy. Partitions
and brokers are immutable values, so `copy` is cheap. A look-up for a request is one dictionary access; lists for people
are sorted when they are requested.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from quire.metadata.broker_replicas import BrokerReplicas
from quire.metadata.features import METADATA_VERSION
from quire.metadata.node_images import BrokerImage, ControllerImage, Endpoint
from quire.metadata.partition_image import PartitionImage
from quire.metadata.topic_names import collision_key
from quire.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
)

__all__ = [
    "BrokerImage",
    "ClusterImage",
    "ConfigResource",
    "ControllerImage",
    "Endpoint",
    "PartitionImage",
    "TopicImage",
]

TOPIC = 2
BROKER = 4
GROUP = 32

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Pairs of entity type and name, sorted by type; no name means the default."""


class ConfigResource(NamedTuple):
    """The owner of dynamic settings: Kafka's resource type and a name. The default of all brokers has name ''."""

    type: int
    name: str


@dataclass(slots=True)
class TopicImage:
    name: str
    topic_id: bytes
    partitions: dict[int, PartitionImage] = field(default_factory=dict)

    def copy(self) -> "TopicImage":
        return TopicImage(self.name, self.topic_id, dict(self.partitions))


@dataclass(slots=True)
class ClusterImage:
    """`offset` and `epoch` are of the last record applied, -1 before the first."""

    offset: int = -1
    epoch: int = -1
    timestamp_ms: int = -1
    features: dict[str, int] = field(default_factory=dict)
    brokers: dict[int, BrokerImage] = field(default_factory=dict)
    controllers: dict[int, ControllerImage] = field(default_factory=dict)
    topics_by_name: dict[str, TopicImage] = field(default_factory=dict)
    topics_by_id: dict[bytes, TopicImage] = field(default_factory=dict)
    configs: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)
    next_producer_id: int = 0
    quotas: dict[QuotaEntity, dict[str, float]] = field(default_factory=dict)
    acls: dict[bytes, AccessControlEntryRecord] = field(default_factory=dict)
    scram_credentials: dict[tuple[str, int], UserScramCredentialRecord] = field(default_factory=dict)
    delegation_tokens: dict[str, DelegationTokenRecord] = field(default_factory=dict)
    _names_by_collision_key: dict[str, dict[str, None]] = field(default_factory=dict, compare=False, repr=False)
    _broker_replicas: BrokerReplicas | None = field(default=None, compare=False, repr=False)
    """None until it is needed: of all images only that of the active controller is asked for it."""

    # --- Look-ups

    @property
    def metadata_version(self) -> int:
        """0 until the first records of a new cluster are applied."""
        return self.features.get(METADATA_VERSION, 0)

    def topic(self, name: str) -> TopicImage | None:
        return self.topics_by_name.get(name)

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        return self.topics_by_id.get(topic_id)

    def partition(self, topic_id: bytes, partition: int) -> PartitionImage | None:
        topic = self.topics_by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(partition)

    def topics_sorted(self) -> list[TopicImage]:
        return [self.topics_by_name[name] for name in sorted(self.topics_by_name)]

    def brokers_sorted(self) -> list[BrokerImage]:
        return [self.brokers[broker_id] for broker_id in sorted(self.brokers)]

    def topic_configs(self, name: str) -> dict[str, str]:
        """The topic's own settings; empty if it has none."""
        return self.configs.get(ConfigResource(TOPIC, name), {})

    def broker_configs(self, broker_id: int | None) -> dict[str, str]:
        """The dynamic settings of one broker, or with None the default of all."""
        return self.configs.get(ConfigResource(BROKER, "" if broker_id is None else str(broker_id)), {})

    def group_configs(self, group_id: str) -> dict[str, str]:
        """The group's own settings."""
        return self.configs.get(ConfigResource(GROUP, group_id), {})

    def colliding_topic(self, name: str) -> str | None:
        """An existing topic whose name differs from this one only in '.' and '_'."""
        names = self._names_by_collision_key.get(collision_key(name), {})
        return next((each for each in names if each != name), None)

    def brokers_with_replicas(self) -> list[int]:
        """Ids, also of brokers that are no longer registered."""
        return self._replicas_by_broker().broker_ids

    def replicas_on(self, broker_id: int) -> Iterator[tuple[TopicImage, int]]:
        """The partitions of a broker. The image may change between two of them."""
        for topic_id, index in self._replicas_by_broker().of(broker_id):
            topic = self.topics_by_id.get(topic_id)
            if topic is not None and index in topic.partitions:
                yield topic, index

    def _replicas_by_broker(self) -> BrokerReplicas:
        if self._broker_replicas is None:
            self._broker_replicas = BrokerReplicas()
            for topic in self.topics_by_name.values():
                for index, partition in topic.partitions.items():
                    self._broker_replicas.add(topic.topic_id, index, partition.replicas)
        return self._broker_replicas

    @property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics_by_name.values())

    # --- Changes that keep the indexes consistent

    def add_topic(self, topic: TopicImage) -> None:
        self.topics_by_name[topic.name] = topic
        self.topics_by_id[topic.topic_id] = topic
        self._names_by_collision_key.setdefault(collision_key(topic.name), {})[topic.name] = None

    def set_partition(self, topic: TopicImage, index: int, partition: PartitionImage) -> None:
        """Creates a partition of the topic, or changes it."""
        before = topic.partitions.get(index)
        topic.partitions[index] = partition
        if self._broker_replicas is None or (before is not None and before.replicas == partition.replicas):
            return
        if before is not None:
            self._broker_replicas.remove(topic.topic_id, index, before.replicas)
        self._broker_replicas.add(topic.topic_id, index, partition.replicas)

    def remove_topic(self, topic: TopicImage) -> None:
        """Removes its settings too."""
        if self._broker_replicas is not None:
            for index, partition in topic.partitions.items():
                self._broker_replicas.remove(topic.topic_id, index, partition.replicas)
        del self.topics_by_name[topic.name]
        del self.topics_by_id[topic.topic_id]
        key = collision_key(topic.name)
        del self._names_by_collision_key[key][topic.name]
        if not self._names_by_collision_key[key]:
            del self._names_by_collision_key[key]
        self.configs.pop(ConfigResource(TOPIC, topic.name), None)

    def copy(self) -> "ClusterImage":
        """An image that changes independently of this one."""
        twin = ClusterImage(
            offset=self.offset,
            epoch=self.epoch,
            timestamp_ms=self.timestamp_ms,
            features=dict(self.features),
            brokers=dict(self.brokers),
            controllers=dict(self.controllers),
            configs={resource: dict(settings) for resource, settings in self.configs.items()},
            next_producer_id=self.next_producer_id,
            quotas={entity: dict(limits) for entity, limits in self.quotas.items()},
            acls=dict(self.acls),
            scram_credentials=dict(self.scram_credentials),
            delegation_tokens=dict(self.delegation_tokens),
        )
        # Not topic by topic: an image is copied on the event loop.
        twin.topics_by_name = {name: topic.copy() for name, topic in self.topics_by_name.items()}
        twin.topics_by_id = {topic.topic_id: topic for topic in twin.topics_by_name.values()}
        twin._names_by_collision_key = {key: dict(names) for key, names in self._names_by_collision_key.items()}
        return twin
