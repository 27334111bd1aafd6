"""CreatePartitions: more partitions for a topic that exists; they are never taken away again."""

from typing import TYPE_CHECKING

from quire.node.authorizer import Operation, Resource
from quire.node.context import Context
from quire.node.slices import Work
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: CreatePartitionsRequest) -> Work[CreatePartitionsResponse]:
    for topic in request.topics:
        if not node.authorizer.allows(context, Operation.ALTER, Resource.TOPIC, topic.name):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"altering {topic.name} is not allowed")
    response: CreatePartitionsResponse = yield node.controller.create_partitions(request, node.clock.now_ms())
    return response


def refuse(request: CreatePartitionsRequest, error: ApiError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            for topic in request.topics
        ]
    )
