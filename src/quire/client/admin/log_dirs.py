"""Moving replicas between the data directories of a broker."""

from collections.abc import Iterable

from quire.client.admin.results import error
from quire.client.cluster import Cluster
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ApiError
from quire.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from quire.steps import Steps


def move_replicas(
    cluster: Cluster, broker: int, replicas: Iterable[TopicPartition], path: str
) -> Steps[dict[TopicPartition, ApiError]]:
    """Has a broker begin to move these replicas to its directory `path`; returns the refused ones."""
    topics: dict[str, list[int]] = {}
    for replica in replicas:
        topics.setdefault(replica.topic, []).append(replica.partition)
    wanted = [AlterReplicaLogDirTopic(name=name, partitions=indexes) for name, indexes in topics.items()]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=wanted)])
    response = yield from cluster.ask(broker, request, AlterReplicaLogDirsResponse)
    refused: dict[TopicPartition, ApiError] = {}
    for topic in response.results:
        for each in topic.partitions:
            name = f"{topic.topic_name}-{each.partition_index}"
            failed = error(each.error_code, None, f"{name} does not move to {path}")
            if failed is not None:
                refused[TopicPartition(topic.topic_name, each.partition_index)] = failed
    return refused
