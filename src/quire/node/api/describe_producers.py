"""DescribeProducers: the producers a partition remembers, with the sequence it expects from each."""

from typing import TYPE_CHECKING

from quire.node.authorizer import Operation, Resource
from quire.node.context import Context
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: DescribeProducersRequest) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_describe(node, context, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def refuse(request: DescribeProducersRequest, error: ApiError) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    PartitionResponse(partition_index=index, error_code=error.code, error_message=error.message)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _describe(node: "Node", context: Context, topic: str, index: int) -> PartitionResponse:
    answer = PartitionResponse(partition_index=index)
    try:
        if not node.authorizer.allows(context, Operation.READ, Resource.TOPIC, topic):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"reading {topic} is not allowed")
        partition = node.partitions.leader(topic, None, index)
    except ApiError as error:
        answer.error_code = error.code
        answer.error_message = error.message
        return answer
    answer.active_producers = [
        ProducerState(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.current_txn_first_offset,
        )
        for producer in partition.producers()
    ]
    return answer
