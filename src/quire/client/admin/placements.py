"""What a plan of replica placement needs to know: brokers with racks and free space, partitions with their sizes."""

from dataclasses import dataclass

from quire.client.admin.cluster import LogDir, describe_cluster, describe_log_dirs
from quire.client.cluster import Cluster
from quire.client.metadata import NO_LEADER
from quire.client.offsets import TopicPartition
from quire.client.placement.model import Node, Placement
from quire.steps import Steps

Sizes = dict[tuple[TopicPartition, int], int]
"""The bytes of each replica, by partition and broker."""


@dataclass(frozen=True, slots=True)
class ClusterPlacement:
    nodes: tuple[Node, ...]
    """The brokers that are up."""
    fenced: tuple[int, ...]
    partitions: tuple[Placement, ...]
    leaderless: frozenset[TopicPartition]


def describe_placements(cluster: Cluster) -> Steps[ClusterPlacement]:
    """Sizes are those of the largest replica: another one may lag."""
    found = yield from describe_cluster(cluster, with_fenced=True)
    up = [broker for broker in found.brokers if broker.node_id not in found.fenced]
    nodes: list[Node] = []
    sizes: Sizes = {}
    for broker in sorted(up, key=lambda each: each.node_id):
        directories = yield from describe_log_dirs(cluster, broker.node_id)
        _add_sizes(sizes, broker.node_id, directories)
        nodes.append(Node(broker.node_id, broker.rack, _free_bytes(directories)))
    largest: dict[TopicPartition, int] = {}
    for (where, _), size_bytes in sizes.items():
        largest[where] = max(size_bytes, largest.get(where, 0))
    yield from cluster.refresh(None)
    partitions: list[Placement] = []
    leaderless: list[TopicPartition] = []
    for name, topic in sorted(cluster.metadata.topics.items()):
        for index, each in sorted(topic.partitions.items()):
            where = TopicPartition(name, index)
            partitions.append(Placement(name, index, tuple(each.replicas), largest.get(where, 0)))
            if each.leader == NO_LEADER:
                leaderless.append(where)
    return ClusterPlacement(tuple(nodes), tuple(sorted(found.fenced)), tuple(partitions), frozenset(leaderless))


def replica_sizes(cluster: Cluster, broker_ids: list[int]) -> Steps[Sizes]:
    """Of all replicas on these brokers."""
    sizes: Sizes = {}
    for broker_id in broker_ids:
        _add_sizes(sizes, broker_id, (yield from describe_log_dirs(cluster, broker_id)))
    return sizes


def _add_sizes(sizes: Sizes, broker_id: int, directories: list[LogDir]) -> None:
    """A replica that moves between two directories of a broker is in both."""
    for directory in directories:
        for each in directory.replicas:
            key = TopicPartition(each.topic, each.partition), broker_id
            sizes[key] = max(each.size_bytes, sizes.get(key, 0))


def _free_bytes(directories: list[LogDir]) -> int | None:
    """Of the directories that work: 0 if all have failed, None if the broker is too old to know."""
    working = [each.usable_bytes for each in directories if each.error is None]
    return None if any(each < 0 for each in working) else sum(working)
