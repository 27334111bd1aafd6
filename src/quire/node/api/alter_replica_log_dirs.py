"""AlterReplicaLogDirs: moves replicas to other data directories of this broker.

The response says that the moves have begun; DescribeLogDirs shows how far they are. A second request replaces the
first, and one for the directory where the replica is cancels it. For a replica that this broker does not have yet, it
remembers the directory and answers REPLICA_NOT_AVAILABLE. `quire.node.moves` moves the logs.

Versions on broker listeners:
    1  the oldest version served: a throttled client gets its response at once and waits by itself (KIP-219)
    2  flexible encoding
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.node.slices import Work
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: AlterReplicaLogDirsRequest) -> Work[AlterReplicaLogDirsResponse]:
    if not node.authorizer.allows(context, AclOperation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "altering the cluster is not allowed")
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            answer = results.setdefault(topic.name, AlterReplicaLogDirTopicResult(topic_name=topic.name))
            for index in topic.partitions:
                code = ErrorCode.NONE
                try:
                    node.moves.request(topic.name, index, directory.path)
                except ApiError as error:
                    code = error.code
                answer.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
                yield None
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def refuse(request: AlterReplicaLogDirsRequest, error: ApiError) -> AlterReplicaLogDirsResponse:
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            answer = results.setdefault(topic.name, AlterReplicaLogDirTopicResult(topic_name=topic.name))
            answer.partitions += [
                AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error.code)
                for index in topic.partitions
            ]
    return AlterReplicaLogDirsResponse(results=list(results.values()))
