"""ListOffsets: the offset of the first record at or after a time, or one of the log's landmarks."""

from typing import TYPE_CHECKING

from quire.node.authorizer import Operation, Resource
from quire.node.context import Context
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from quire.node.node import Node

READ_COMMITTED = 1
HAS_LEADER_EPOCH = 4


def handle(node: "Node", context: Context, request: ListOffsetsRequest) -> ListOffsetsResponse:
    committed_only = request.isolation_level == READ_COMMITTED
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_find(node, context, topic.name, wanted, committed_only) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def refuse(request: ListOffsetsRequest, error: ApiError) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=error.code)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _find(
    node: "Node", context: Context, topic: str, wanted: ListOffsetsPartition, committed_only: bool
) -> ListOffsetsPartitionResponse:
    answer = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
    try:
        if not node.authorizer.allows(context, Operation.DESCRIBE, Resource.TOPIC, topic):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"describing {topic} is not allowed")
        partition = node.partitions.leader(topic, None, wanted.partition_index)
        partition.check_leader_epoch(wanted.current_leader_epoch)
        found = partition.find_offset(wanted.timestamp, committed_only)
    except ApiError as error:
        answer.error_code = error.code
        return answer
    if found is not None:
        answer.timestamp, answer.offset, leader_epoch = found
        if context.api_version >= HAS_LEADER_EPOCH:
            answer.leader_epoch = leader_epoch
    return answer
