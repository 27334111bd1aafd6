"""OffsetForLeaderEpoch: where an epoch ended in this log, so that a client can tell whether its own position still
exists after a change of leader.
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import Operation, Resource
from quire.node.context import Context
from quire.node.slices import Work
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: OffsetForLeaderEpochRequest) -> Work[OffsetForLeaderEpochResponse]:
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        answers = OffsetForLeaderTopicResult(topic=topic.topic)
        response.topics.append(answers)
        for wanted in topic.partitions:
            answers.partitions.append(_epoch_end(node, context, topic.topic, wanted))
            yield None
    return response


def refuse(request: OffsetForLeaderEpochRequest, error: ApiError) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(partition=wanted.partition, error_code=error.code) for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _epoch_end(node: "Node", context: Context, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    answer = EpochEndOffset(partition=wanted.partition)
    try:
        if not node.authorizer.allows(context, Operation.DESCRIBE, Resource.TOPIC, topic):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"describing {topic} is not allowed")
        partition = node.partitions.leader(topic, None, wanted.partition)
        partition.check_leader_epoch(wanted.current_leader_epoch)
        answer.leader_epoch, answer.end_offset = partition.epoch_end(wanted.leader_epoch)
    except ApiError as error:
        answer.error_code = error.code
    return answer
