"""The nodes' own figures in `make run`: records and bytes a second, memory, and how many events have arrived.

They come from the nodes from their first second on, while Spark is still starting: log end offsets, sizes on disk, the
memory of the processes, and which replicas are in sync.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from quire.client.admin.cluster import describe_log_dirs
from quire.client.admin.topics import describe_topics
from quire.client.errors import ClientError
from quire.client.offsets import LATEST, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError

PATIENCE_MS = 2_000.0
"""For a node that may have failed."""


@dataclass(slots=True, frozen=True)
class NodeFigures:
    """Rates are since the figures before; None at the first look."""

    at_s: float
    records_by_topic: Mapping[str, int] = field(default_factory=dict)
    stored_bytes: int = 0
    memory_bytes: int | None = None
    records_per_second: float | None = None
    bytes_per_second: float | None = None
    brokers: int = 1
    """That are up."""
    partitions: int = 0
    fully_in_sync: int = 0
    """Partitions whose replicas are all in sync."""

    @property
    def records(self) -> int:
        return sum(self.records_by_topic.values())

    def since(self, before: "NodeFigures | None") -> "NodeFigures":
        """The same with rates. Deleted records never make a rate negative."""
        if before is None or self.at_s <= before.at_s:
            return self
        seconds = self.at_s - before.at_s
        return replace(
            self,
            records_per_second=max(0, self.records - before.records) / seconds,
            bytes_per_second=max(0, self.stored_bytes - before.stored_bytes) / seconds,
        )


def look_at_nodes(client: BlockingClient, pids: Iterable[int], at_s: float) -> NodeFigures:
    """The figures of a cluster of these processes; internal topics count for their bytes only."""
    cluster = client.cluster
    topics = [topic for topic in client.run(describe_topics(cluster)).values() if not isinstance(topic, ApiError)]
    led = [TopicPartition(topic.name, index) for topic in topics if not topic.internal for index in topic.led]
    by_topic: dict[str, int] = {}
    if led:
        for topic_partition, at in client.run(list_offsets(cluster, dict.fromkeys(led, LATEST))).items():
            by_topic[topic_partition.topic] = by_topic.get(topic_partition.topic, 0) + at.offset
    partitions = [partition for topic in topics for partition in topic.partitions.values()]
    memory = [memory_bytes(pid) for pid in pids]
    known = [each for each in memory if each is not None]
    return NodeFigures(
        at_s,
        by_topic,
        sum(_stored_bytes(client, node) for node in list(cluster.metadata.brokers)),
        sum(known) if known else None,
        brokers=len(cluster.metadata.brokers),
        partitions=len(partitions),
        fully_in_sync=sum(len(each.isr) == len(each.replicas) for each in partitions),
    )


def _stored_bytes(client: BlockingClient, node: int) -> int:
    try:
        folders = client.run(describe_log_dirs(client.cluster, node), PATIENCE_MS)
    except (ApiError, ClientError):
        return 0  # The node has just failed.
    return sum(replica.size_bytes for folder in folders for replica in folder.replicas)


def memory_bytes(pid: int) -> int | None:
    """The memory that a process occupies; None if the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
