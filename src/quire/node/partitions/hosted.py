"""The table of the partitions that are open on this node, beside the committed image that they follow."""

from collections.abc import Iterator

from quire.metadata.image import ClusterImage, TopicImage
from quire.metadata.partition_image import NO_LEADER
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.uuids import METADATA_TOPIC_ID, ZERO
from quire.replication.partition import Partition
from quire.storage.directory.log_directory import LogDirectory

PartitionId = tuple[bytes, int]
"""Topic id and partition index."""


class HostedPartitions:
    __slots__ = ("_node_id", "by_id", "by_name", "directories", "directory_of", "image", "undecided")

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self.directories: list[LogDirectory] = []
        self.image = ClusterImage()
        self.by_name: dict[tuple[str, int], Partition] = {}
        self.by_id: dict[PartitionId, Partition] = {}
        self.directory_of: dict[Partition, LogDirectory] = {}
        self.undecided: set[tuple[str, int]] = set()
        """Partitions with a log that is not used, because another directory may have a newer one."""

    def __iter__(self) -> Iterator[Partition]:
        # A copy: any use of a partition may find its disk broken, which removes partitions.
        return iter(list(self.by_name.values()))

    def add(self, partition: Partition, directory: LogDirectory) -> None:
        self.by_name[partition.topic, partition.index] = partition
        self.by_id[partition.topic_id, partition.index] = partition
        self.directory_of[partition] = directory

    def remove(self, partition: Partition) -> LogDirectory:
        del self.by_name[partition.topic, partition.index]
        del self.by_id[partition.topic_id, partition.index]
        return self.directory_of.pop(partition)

    def topic(self, name: str, topic_id: bytes | None) -> TopicImage | None:
        """The topic in the image by its id, or by name if the request has no id."""
        if topic_id is not None and topic_id != ZERO:
            return self.image.topic_by_id(topic_id)
        return self.image.topic(name)

    def of_topic(self, name: str) -> list[Partition]:
        topic = self.image.topic(name)
        indexes = topic.partitions if topic is not None else ()
        return [partition for index in indexes if (partition := self.by_name.get((name, index))) is not None]

    def in_directory(self, directory: LogDirectory) -> list[Partition]:
        held = [partition for partition in self if self.directory_of[partition] is directory]
        return sorted(held, key=lambda partition: (partition.topic, partition.index))

    def why_missing(self, topic: str, topic_id: bytes | None, index: int) -> ApiError:
        """The error for a request to a partition that this node does not lead, or cannot serve."""
        found = self.topic(topic, topic_id)
        if found is None and topic_id is not None and topic_id != ZERO:
            is_metadata = topic_id == METADATA_TOPIC_ID
            why = "only controller listeners have the metadata log" if is_metadata else "there is no topic with this id"
            return ApiError(ErrorCode.UNKNOWN_TOPIC_ID, why)
        if found is None or index not in found.partitions:
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {index} of topic {topic}")
        leader = found.partitions[index].leader
        if leader == self._node_id or (leader == NO_LEADER and self._is_offline_here(found, index)):
            return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log of {found.name}-{index} is offline")
        who = "no node" if leader == NO_LEADER else "another node"
        return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{who} leads {found.name}-{index}")

    def _is_offline_here(self, topic: TopicImage, index: int) -> bool:
        """Whether this node has a replica without an open log; no longer when it has given up what it led, to stop."""
        broker = self.image.brokers.get(self._node_id)
        is_leaving = broker is not None and broker.in_controlled_shutdown
        is_replica = self._node_id in topic.partitions[index].replicas
        return is_replica and not is_leaving and (topic.topic_id, index) not in self.by_id
