"""CreateTopics: the controller checks the topics and records them in the metadata log.

The response is sent when the records are committed and this node's image has them. The logs of many topics are created
after that; a request for one of them creates its log at once.

Versions on broker and controller listeners:
    2  the oldest version served: throttle time in the response
    3  a throttled client gets its response at once and waits by itself (KIP-219)
    4  -1 as the number of partitions or replicas means the cluster's default (KIP-464)
    5  flexible encoding; the settings of the new topic in the response (KIP-525)
    6  the client knows THROTTLING_QUOTA_EXCEEDED (KIP-599)
    7  the topic id in the response (KIP-516)
"""

from typing import TYPE_CHECKING

from quire.controller import create_topics
from quire.controller.refusals import refuse
from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.node.slices import Work
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from quire.node.node import Node

__all__ = ["handle", "refuse"]


def handle(node: "Node", context: Context, request: CreateTopicsRequest) -> Work[CreateTopicsResponse]:
    authorizer = node.authorizer
    denied: list[CreatableTopic] = []
    if not authorizer.allows(context, AclOperation.CREATE, Resource.CLUSTER, CLUSTER_NAME):
        denied = [
            topic
            for topic in request.topics
            if not authorizer.allows(context, AclOperation.CREATE, Resource.TOPIC, topic.name)
        ]
        request.topics = [topic for topic in request.topics if topic not in denied]
    response: CreateTopicsResponse = yield node.to_controller.create_topics(request, context)
    error = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "creating this topic is not allowed")
    response.topics.extend(create_topics.refused(topic, error) for topic in denied)
    return response
