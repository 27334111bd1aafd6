"""DescribeProducers: the producers that a partition remembers, with the last sequence number of each.

Versions on broker listeners:
    0  the first version (KIP-664)
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import AclOperation, Resource
from quire.node.context import Context
from quire.node.entries import entries
from quire.node.slices import Work
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


def handle(node: "Node", context: Context, request: DescribeProducersRequest) -> Work[DescribeProducersResponse]:
    named = [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    partitions = yield from entries(
        named,
        lambda partition: _describe(node, context, *partition),
        lambda partition, error: _refused(partition[1], error),
        lambda partitions: DescribeProducersResponse(topics=[TopicResponse(partitions=partitions)]),
        context.api_version,
    )
    answers = {topic.name: TopicResponse(name=topic.name) for topic in request.topics}
    for (topic, _), partition in zip(dict.fromkeys(named), partitions, strict=True):
        answers[topic].partitions.append(partition)
    return DescribeProducersResponse(topics=list(answers.values()))


def refuse(request: DescribeProducersRequest, error: ApiError) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_refused(index, error) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _refused(index: int, error: ApiError) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=error.code, error_message=error.message)


def _describe(node: "Node", context: Context, topic: str, index: int) -> Work[PartitionResponse]:
    try:
        if not node.authorizer.allows(context, AclOperation.READ, Resource.TOPIC, topic):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"reading {topic} is not allowed")
        partition = node.partitions.leader(topic, None, index).partition
    except ApiError as error:
        return _refused(index, error)
    answer = PartitionResponse(partition_index=index)
    for producer in partition.producers():
        answer.active_producers.append(
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.current_txn_first_offset,
            )
        )
        yield None
    return answer
