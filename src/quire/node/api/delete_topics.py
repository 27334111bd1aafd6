"""DeleteTopics: the controller records the deletion in the metadata log.

The node renames the logs before it responds, and removes their files in the background.

Versions on broker and controller listeners:
    1  the oldest version served: throttle time in the response
    2  a throttled client gets its response at once and waits by itself (KIP-219)
    3  the client knows TOPIC_DELETION_DISABLED; with older versions it gets INVALID_REQUEST
    4  flexible encoding
    5  error messages; the client knows THROTTLING_QUOTA_EXCEEDED (KIP-599)
    6  topics by id (KIP-516)
"""

from typing import TYPE_CHECKING

from quire.controller.refusals import refuse
from quire.node.authorizer import AclOperation, Resource
from quire.node.context import Context
from quire.node.slices import Work
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]

DELETION_DISABLED_SINCE = 3
"""Clients of older versions do not know TOPIC_DELETION_DISABLED, and get INVALID_REQUEST as from Kafka."""


def handle(node: "Node", context: Context, request: DeleteTopicsRequest) -> Work[DeleteTopicsResponse]:
    if not node.config.get_bool("delete.topic.enable"):
        known = context.api_version >= DELETION_DISABLED_SINCE
        code = ErrorCode.TOPIC_DELETION_DISABLED if known else ErrorCode.INVALID_REQUEST
        raise ApiError(code, "delete.topic.enable is false on this cluster")
    for name in _names(node, request):
        if not node.authorizer.allows(context, AclOperation.DELETE, Resource.TOPIC, name):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"deleting {name} is not allowed")
    response: DeleteTopicsResponse = yield node.to_controller.delete_topics(request, context)
    # A crash after the response must not leave logs behind, because nothing would delete them later.
    yield node.partitions.deletions.when_done()
    return response


def _names(node: "Node", request: DeleteTopicsRequest) -> list[str]:
    names = list(request.topic_names)
    for wanted in request.topics:
        if wanted.name is not None:
            names.append(wanted.name)
        elif (topic := node.image.topic_by_id(wanted.topic_id)) is not None:
            names.append(topic.name)
    return names
