"""Metadata: the live brokers, the topics, and the leader and replicas of each partition.

Creates missing topics if both the request and `auto.create.topics.enable` allow it.

Versions on broker listeners:
    0   the first version: no topics means all topics
    1   null means all topics; racks, the controller, internal topics
    2   cluster id
    3   throttle time in the response
    4   the client may forbid that topics are created
    5   offline replicas (KIP-112)
    6   a throttled client gets its response at once and waits by itself (KIP-219)
    7   leader epochs (KIP-320)
    8   authorized operations (KIP-430)
    9   flexible encoding
    10  topic ids in the response (KIP-516)
    11  no authorized operations of the cluster: see DescribeCluster (KIP-700)
    12  topics by id (KIP-516)
    13  an error code for the whole request (KIP-1102)
"""

from typing import TYPE_CHECKING

from quire.controller.topic_names import check_topic_name
from quire.metadata.image import TopicImage
from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.node.slices import Work
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import is_internal
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from quire.protocol.uuids import ZERO

if TYPE_CHECKING:
    from quire.node.node import Node

FIRST_VERSION_WHERE_NULL_MEANS_ALL = 1


def handle(node: "Node", context: Context, request: MetadataRequest) -> Work[MetadataResponse]:
    missing = _to_create(node, context, request)
    failures = {}
    if missing:
        failures = _failures((yield _create(node, missing)))
    return (yield from _describe(node, context, request, failures))


def _create(node: "Node", missing: list[str]) -> Pending[CreateTopicsResponse]:
    return node.to_controller.create_topics(
        CreateTopicsRequest(
            topics=[CreatableTopic(name=name, num_partitions=-1, replication_factor=-1) for name in missing]
        )
    )


def refuse(request: MetadataRequest, error: ApiError) -> MetadataResponse:
    return MetadataResponse(
        error_code=error.code,
        topics=[
            MetadataResponseTopic(error_code=error.code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or []
        ],
    )


def _asks_for_all(context: Context, request: MetadataRequest) -> bool:
    if context.api_version < FIRST_VERSION_WHERE_NULL_MEANS_ALL:
        return not request.topics
    return request.topics is None


def _to_create(node: "Node", context: Context, request: MetadataRequest) -> list[str]:
    if not request.allow_auto_topic_creation or not node.config.get_bool("auto.create.topics.enable"):
        return []
    names = {topic.name: None for topic in request.topics or [] if topic.name}
    return [
        name
        for name in names
        if node.image.topic(name) is None
        and not is_internal(name)
        and node.authorizer.allows(context, AclOperation.CREATE, Resource.TOPIC, name)
    ]


def _failures(response: CreateTopicsResponse) -> dict[str, ErrorCode]:
    """TOPIC_ALREADY_EXISTS is not a failure: another request has created the topic at the same time."""
    return {
        topic.name: ErrorCode(topic.error_code)
        for topic in response.topics
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    }


def _describe(
    node: "Node", context: Context, request: MetadataRequest, failures: dict[str, ErrorCode]
) -> Work[MetadataResponse]:
    operations = request.include_topic_authorized_operations
    topics = []
    if _asks_for_all(context, request):
        for topic in node.image.topics_sorted():
            if node.authorizer.allows(context, AclOperation.DESCRIBE, Resource.TOPIC, topic.name):
                topics.append((yield from _topic(node, context, topic, operations)))
            yield None
    else:
        # A topic that is named twice is described once. Otherwise a small request could cause a huge response.
        once = {(wanted.topic_id, wanted.name): wanted for wanted in request.topics or []}
        for wanted in once.values():
            topics.append((yield from _wanted(node, context, wanted, operations, failures)))
            yield None
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=broker.broker_id, host=host, port=port, rack=broker.rack)
            for broker, host, port in node.live_brokers(context.listener)
        ],
        cluster_id=node.cluster_id,
        controller_id=node.a_live_broker_id(),
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = node.authorizer.operations(context, Resource.CLUSTER, CLUSTER_NAME)
    return response


def _wanted(
    node: "Node",
    context: Context,
    wanted: MetadataRequestTopic,
    operations: bool,
    failures: dict[str, ErrorCode],
) -> Work[MetadataResponseTopic]:
    if wanted.topic_id != ZERO:
        topic = node.image.topic_by_id(wanted.topic_id)
        if topic is None:
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
                name=None if context.api_version >= 12 else "",
                topic_id=wanted.topic_id,
            )
        return (yield from _topic(node, context, topic, operations))
    name = wanted.name or ""
    topic = node.image.topic(name)
    if topic is None:
        return MetadataResponseTopic(error_code=failures.get(name) or _why_missing(name), name=name)
    return (yield from _topic(node, context, topic, operations))


def _why_missing(name: str) -> ErrorCode:
    try:
        check_topic_name(name)
    except ApiError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _topic(node: "Node", context: Context, topic: TopicImage, operations: bool) -> Work[MetadataResponseTopic]:
    if not node.authorizer.allows(context, AclOperation.DESCRIBE, Resource.TOPIC, topic.name):
        return MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=topic.name)
    answer = MetadataResponseTopic(name=topic.name, topic_id=topic.topic_id, is_internal=is_internal(topic.name))
    for index, partition in sorted(topic.partitions.items()):
        answer.partitions.append(
            MetadataResponsePartition(
                error_code=ErrorCode.NONE if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                offline_replicas=node.offline_replicas(partition),
            )
        )
        yield None
    if operations:
        answer.topic_authorized_operations = node.authorizer.operations(context, Resource.TOPIC, topic.name)
    return answer
