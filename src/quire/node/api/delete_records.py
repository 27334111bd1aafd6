"""DeleteRecords: move a partition's log start offset forward, so that everything before it is gone for readers."""

from typing import TYPE_CHECKING

from quire.node.authorizer import Operation, Resource
from quire.node.context import Context
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(node, context, topic.name, wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def refuse(request: DeleteRecordsRequest, error: ApiError) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=wanted.partition_index, low_watermark=-1, error_code=error.code
                    )
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _delete(node: "Node", context: Context, topic: str, wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    answer = DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=-1)
    try:
        if not node.authorizer.allows(context, Operation.DELETE, Resource.TOPIC, topic):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"deleting from {topic} is not allowed")
        partition = node.partitions.leader(topic, None, wanted.partition_index)
        answer.low_watermark = partition.delete_records(wanted.offset)
        node.partitions.checkpoint()
    except ApiError as error:
        answer.error_code = error.code
    return answer
