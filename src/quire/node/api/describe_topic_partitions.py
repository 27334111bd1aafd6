"""DescribeTopicPartitions: topics and their partitions with eligible leader replicas, one page at a time.

Versions on broker listeners:
    0  the first version (KIP-966)
"""

from typing import TYPE_CHECKING

from quire.metadata.image import PartitionImage, TopicImage
from quire.node.authorizer import AclOperation, Resource
from quire.node.context import Context
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import is_internal
from quire.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    """Topics are sorted by name, so that a cursor means the same on every broker."""
    room = min(request.response_partition_limit, node.config.get_int("max.request.partition.size.limit"))
    if room <= 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the partition limit of a page must be positive")
    first_topic, first_partition = "", 0
    if request.cursor is not None:
        first_topic, first_partition = request.cursor.topic_name, request.cursor.partition_index
        if first_partition < 0:
            raise ApiError(ErrorCode.INVALID_REQUEST, "a cursor's partition must not be negative")
    names = sorted({topic.name for topic in request.topics} or {topic.name for topic in node.image.topics_sorted()})
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if name < first_topic:
            continue
        start = first_partition if name == first_topic else 0
        answer, next_partition = _topic(node, context, name, start, room)
        if answer is None:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=start)
            break
        response.topics.append(answer)
        room -= len(answer.partitions)
        if next_partition is not None:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(
                topic_name=name, partition_index=next_partition
            )
            break
    return response


def refuse(request: DescribeTopicPartitionsRequest, error: ApiError) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=error.code, name=topic.name) for topic in request.topics
        ]
    )


def _topic(
    node: "Node", context: Context, name: str, start: int, room: int
) -> tuple[DescribeTopicPartitionsResponseTopic | None, int | None]:
    """The topic's part of the page, and the partition with which the next page starts. No topic if the page is full."""
    topic = node.image.topic(name)
    if not node.authorizer.allows(context, AclOperation.DESCRIBE, Resource.TOPIC, name):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return DescribeTopicPartitionsResponseTopic(error_code=code, name=name), None
    if topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return DescribeTopicPartitionsResponseTopic(error_code=code, name=name), None
    if room <= 0:
        return None, None
    wanted = [entry for entry in sorted(topic.partitions.items()) if entry[0] >= start]
    answer = _describe(node, context, topic, wanted[:room])
    return answer, wanted[room][0] if len(wanted) > room else None


def _describe(
    node: "Node", context: Context, topic: TopicImage, partitions: list[tuple[int, PartitionImage]]
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        topic_authorized_operations=node.authorizer.operations(context, Resource.TOPIC, topic.name),
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                error_code=ErrorCode.NONE if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                eligible_leader_replicas=list(partition.elr),
                last_known_elr=list(partition.last_known_elr),
                offline_replicas=node.offline_replicas(partition),
            )
            for index, partition in partitions
        ],
    )
