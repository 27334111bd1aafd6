"""OffsetForLeaderEpoch: the end offset of a leader epoch in this log.

After a change of leader, a client compares it with its own position to find out whether the log was truncated.

Versions on broker listeners:
    2  the oldest version served: the client's leader epoch, throttle time (KIP-320)
    3  replica id, which tells followers from consumers (KIP-392)
    4  flexible encoding
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import AclOperation, Resource
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
        if not node.authorizer.allows(context, AclOperation.DESCRIBE, Resource.TOPIC, topic):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"describing {topic} is not allowed")
        partition = node.partitions.leader(topic, None, wanted.partition).partition
        partition.check_leader_epoch(wanted.current_leader_epoch)
        answer.leader_epoch, answer.end_offset = partition.epoch_end(wanted.leader_epoch)
    except ApiError as error:
        answer.error_code = error.code
    return answer
