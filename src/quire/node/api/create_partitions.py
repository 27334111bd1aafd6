"""CreatePartitions: adds partitions to existing topics. Partitions cannot be removed again.

Versions on broker and controller listeners:
    0  the first version
    1  a throttled client gets its response at once and waits by itself (KIP-219)
    2  flexible encoding
    3  the client knows THROTTLING_QUOTA_EXCEEDED (KIP-599)
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.authorizer import AclOperation, Resource
from quire.node.context import Context
from quire.node.slices import Work
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(node: "Node", context: Context, request: CreatePartitionsRequest) -> Work[CreatePartitionsResponse]:
    for topic in request.topics:
        if not node.authorizer.allows(context, AclOperation.ALTER, Resource.TOPIC, topic.name):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"altering {topic.name} is not allowed")
    response: CreatePartitionsResponse = yield node.to_controller.create_partitions(request, context)
    return response
