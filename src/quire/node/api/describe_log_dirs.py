"""DescribeLogDirs: the size of each partition in this node's data directories, and the free space of their disks.

A replica that moves to another directory is in both: there as a future log, with how many offsets it is behind.

Versions on broker listeners:
    1  the oldest version served: a throttled client gets its response at once and waits by itself (KIP-219)
    2  flexible encoding
    3  an error code for the whole request
    4  total and usable bytes of a directory's disk (KIP-827)
    5  whether a directory is cordoned (KIP-1066); none is on this node
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.node.slices import Work
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from quire.storage.directory.log_directory import LogDirectory

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: DescribeLogDirsRequest) -> Work[DescribeLogDirsResponse]:
    if not node.authorizer.allows(context, AclOperation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "describing the cluster is not allowed")
    response = DescribeLogDirsResponse()
    for directory in node.partitions.directories():
        response.results.append((yield from _describe(node, directory, request)))
    return response


def refuse(request: DescribeLogDirsRequest, error: ApiError) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(error_code=error.code)


def _offline(directory: LogDirectory) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path)


def _describe(node: "Node", directory: LogDirectory, request: DescribeLogDirsRequest) -> Work[DescribeLogDirsResult]:
    if directory.failure is not None:
        return _offline(directory)
    try:
        return DescribeLogDirsResult(
            log_dir=directory.path,
            topics=(yield from _topics(node, directory, request)),
            total_bytes=node.disk.total_bytes(directory.path),
            usable_bytes=node.disk.free_bytes(directory.path),
        )
    except OSError as error:
        directory.fail(error)
        return _offline(directory)


def _topics(node: "Node", directory: LogDirectory, request: DescribeLogDirsRequest) -> Work[list[DescribeLogDirsTopic]]:
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    topics: dict[str, DescribeLogDirsTopic] = {}
    for partition in node.partitions.in_directory(directory):
        if wanted is None or (partition.topic, partition.index) in wanted:
            topic = topics.setdefault(partition.topic, DescribeLogDirsTopic(name=partition.topic))
            topic.partitions.append(
                DescribeLogDirsPartition(
                    partition_index=partition.index, partition_size=partition.log.size_bytes, offset_lag=0
                )
            )
        yield None
    for (name, index), lag, size_bytes in node.moves.futures(directory):
        if wanted is None or (name, index) in wanted:
            topic = topics.setdefault(name, DescribeLogDirsTopic(name=name))
            topic.partitions.append(
                DescribeLogDirsPartition(
                    partition_index=index, partition_size=size_bytes, offset_lag=lag, is_future_key=True
                )
            )
        yield None
    return list(topics.values())
