"""The node's own figures in `make run`: records and bytes a second, memory, and how many events have arrived.

They come from the node from its first second on, while Spark is still starting: log end offsets, sizes on disk, and the
memory of the process.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from quire.client.admin.cluster import describe_log_dirs
from quire.client.admin.topics import describe_topics
from quire.client.offsets import LATEST, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError


@dataclass(slots=True, frozen=True)
class NodeFigures:
    """Rates are since the figures before; None at the first look."""

    at_s: float
    records_by_topic: Mapping[str, int] = field(default_factory=dict)
    stored_bytes: int = 0
    memory_bytes: int | None = None
    records_per_second: float | None = None
    bytes_per_second: float | None = None

    @property
    def records(self) -> int:
        return sum(self.records_by_topic.values())

    def since(self, before: "NodeFigures | None") -> "NodeFigures":
        """The same with rates. Deleted records never make a rate negative."""
        if before is None or self.at_s <= before.at_s:
            return self
        seconds = self.at_s - before.at_s
        return NodeFigures(
            self.at_s,
            self.records_by_topic,
            self.stored_bytes,
            self.memory_bytes,
            max(0, self.records - before.records) / seconds,
            max(0, self.stored_bytes - before.stored_bytes) / seconds,
        )


def look_at_node(client: BlockingClient, pid: int, at_s: float) -> NodeFigures:
    """The figures of a cluster of one node, whose process has this id; internal topics count for their bytes only."""
    cluster = client.cluster
    topics = [topic for topic in client.run(describe_topics(cluster)).values() if not isinstance(topic, ApiError)]
    led = [TopicPartition(topic.name, index) for topic in topics if not topic.internal for index in topic.led]
    by_topic: dict[str, int] = {}
    if led:
        for topic_partition, at in client.run(list_offsets(cluster, dict.fromkeys(led, LATEST))).items():
            by_topic[topic_partition.topic] = by_topic.get(topic_partition.topic, 0) + at.offset
    folders = [folder for node in cluster.metadata.brokers for folder in client.run(describe_log_dirs(cluster, node))]
    stored = sum(replica.size_bytes for folder in folders for replica in folder.replicas)
    return NodeFigures(at_s, by_topic, stored, memory_bytes(pid))


def memory_bytes(pid: int) -> int | None:
    """The memory that a process occupies; None if the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
