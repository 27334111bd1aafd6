"""CreateTopics: checked and recorded by the controller, answered when the record is committed and the logs exist."""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, Operation, Resource
from quire.node.context import Context
from quire.node.slices import Work
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from quire.node.node import Node


def handle(node: "Node", context: Context, request: CreateTopicsRequest) -> Work[CreateTopicsResponse]:
    authorizer = node.authorizer
    denied: list[CreatableTopic] = []
    if not authorizer.allows(context, Operation.CREATE, Resource.CLUSTER, CLUSTER_NAME):
        denied = [
            topic
            for topic in request.topics
            if not authorizer.allows(context, Operation.CREATE, Resource.TOPIC, topic.name)
        ]
        request.topics = [topic for topic in request.topics if topic not in denied]
    response: CreateTopicsResponse = yield node.controller.create_topics(request, node.clock.now_ms())
    error = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "creating this topic is not allowed")
    response.topics.extend(_refused(topic.name, error) for topic in denied)
    return response


def refuse(request: CreateTopicsRequest, error: ApiError) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[_refused(topic.name, error) for topic in request.topics])


def _refused(name: str, error: ApiError) -> CreatableTopicResult:
    """An empty list of configs, not null: the Java admin client does not survive null there."""
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message, configs=[])
