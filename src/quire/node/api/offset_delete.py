"""OffsetDelete: an administrator removes what a group has committed for some partitions."""

from typing import TYPE_CHECKING

from quire.node.authorizer import Operation
from quire.node.context import Context
from quire.node.group_requests import caller_of, may_read_topic, run_in_group
from quire.node.offset_portions import are_many, in_portions
from quire.node.slices import Work, outcome
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: OffsetDeleteRequest) -> Work[OffsetDeleteResponse]:
    denied = [
        OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                OffsetDeleteResponsePartition(
                    partition_index=partition.partition_index, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
        if not may_read_topic(node, context, topic.name)
    ]
    request.topics = [topic for topic in request.topics if may_read_topic(node, context, topic.name)]
    caller = caller_of(context)

    def delete(portion: OffsetDeleteRequest) -> Pending[OffsetDeleteResponse | ApiError]:
        return run_in_group(
            node,
            context,
            request.group_id,
            lambda machine, now_ms: machine.offset_delete(portion, caller, now_ms),
            Operation.DELETE,
        )

    response = yield from (in_portions(request, delete) if are_many(request.topics) else outcome(delete(request)))
    response.topics.extend(denied)
    return response


def refuse(request: OffsetDeleteRequest, error: ApiError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code)
