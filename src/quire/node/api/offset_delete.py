"""OffsetDelete: deletes offsets that a group has committed. Administrators send it.

Versions on broker listeners:
    0  the first version (KIP-496)
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import AclOperation
from quire.node.context import Context
from quire.node.group_requests import caller_of, may_read_topic, run_in_group
from quire.node.offset_portions import are_many, in_portions
from quire.node.slices import Work, outcome
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: OffsetDeleteRequest) -> Work[OffsetDeleteResponse]:
    denied = [
        _refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
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
            AclOperation.DELETE,
        )

    if are_many(request.topics):
        response = yield from in_portions(request, delete, _refuse_portion)
    else:
        response = yield from outcome(delete(request))
    response.topics.extend(denied)
    return response


def _refuse_portion(portion: OffsetDeleteRequest, error: ApiError) -> OffsetDeleteResponse:
    """In each partition, because other portions of the request have succeeded."""
    return OffsetDeleteResponse(topics=[_refused(topic, error.code) for topic in portion.topics])


def _refused(topic: OffsetDeleteRequestTopic, error: ErrorCode) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=error)
            for each in topic.partitions
        ],
    )


def refuse(request: OffsetDeleteRequest, error: ApiError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code)
