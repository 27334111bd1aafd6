"""DeleteTopics: recorded by the controller; the logs are renamed at once and removed in the background."""

from typing import TYPE_CHECKING

from quire.node.authorizer import Operation, Resource
from quire.node.context import Context
from quire.node.slices import Work
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: DeleteTopicsRequest) -> Work[DeleteTopicsResponse]:
    if not node.config.get_bool("delete.topic.enable"):
        raise ApiError(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false on this cluster")
    for name in _names(node, request):
        if not node.authorizer.allows(context, Operation.DELETE, Resource.TOPIC, name):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"deleting {name} is not allowed")
    response: DeleteTopicsResponse = yield node.controller.delete_topics(request, node.clock.now_ms())
    # A crash after the answer must not leave logs behind that nothing would ever delete.
    yield node.partitions.deletions.when_done()
    return response


def refuse(request: DeleteTopicsRequest, error: ApiError) -> DeleteTopicsResponse:
    results = [
        DeletableTopicResult(
            name=topic.name, topic_id=topic.topic_id, error_code=error.code, error_message=error.message
        )
        for topic in request.topics
    ]
    results += [
        DeletableTopicResult(name=name, error_code=error.code, error_message=error.message)
        for name in request.topic_names
    ]
    return DeleteTopicsResponse(responses=results)


def _names(node: "Node", request: DeleteTopicsRequest) -> list[str]:
    names = list(request.topic_names)
    for wanted in request.topics:
        if wanted.name is not None:
            names.append(wanted.name)
        elif (topic := node.image.topic_by_id(wanted.topic_id)) is not None:
            names.append(topic.name)
    return names
