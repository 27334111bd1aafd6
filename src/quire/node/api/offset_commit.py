"""OffsetCommit: stores the offsets up to which a group, or a consumer without a group's protocol, has read.

Versions on broker listeners:
    2   the oldest version served: the client sends a retention time
    3   throttle time in the response
    4   a throttled client gets its response at once and waits by itself (KIP-219)
    5   no retention time (KIP-211)
    6   leader epoch of the committed offset (KIP-320)
    7   group.instance.id (KIP-345)
    8   flexible encoding
    9   members of consumer groups commit too (KIP-848)
    10  topics by id instead of by name
"""

from typing import TYPE_CHECKING

from quire.node.context import Context
from quire.node.group_requests import caller_of, may_read_topic, run_in_group
from quire.node.offset_portions import are_many, in_portions
from quire.node.slices import Work
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from quire.node.node import Node


PendingOffsetCommitResponse = Pending[OffsetCommitResponse | ApiError]


def handle(
    node: "Node", context: Context, request: OffsetCommitRequest
) -> PendingOffsetCommitResponse | Work[OffsetCommitResponse]:
    denied = [topic for topic in request.topics if not _may_commit(node, context, topic)]
    if denied:
        request.topics = [topic for topic in request.topics if topic not in denied]
    if are_many(request.topics):
        return _commit_in_portions(node, context, request, denied)
    answer = _commit(node, context, request)
    return answer if not denied else answer.then(lambda response: _with_denied(response, denied))


def refuse(request: OffsetCommitRequest, error: ApiError) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=[_refused(topic, error.code) for topic in request.topics])


def _commit(node: "Node", context: Context, request: OffsetCommitRequest) -> PendingOffsetCommitResponse:
    caller = caller_of(context)
    return run_in_group(
        node, context, request.group_id, lambda machine, now_ms: machine.offset_commit(request, caller, now_ms)
    )


def _commit_in_portions(
    node: "Node", context: Context, request: OffsetCommitRequest, denied: list[OffsetCommitRequestTopic]
) -> Work[OffsetCommitResponse]:
    response = yield from in_portions(request, lambda portion: _commit(node, context, portion), refuse)
    response.topics.extend(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in denied)
    return response


def _may_commit(node: "Node", context: Context, topic: OffsetCommitRequestTopic) -> bool:
    named = node.image.topic_by_id(topic.topic_id) if not topic.name else None
    return may_read_topic(node, context, named.name if named is not None else topic.name)


def _with_denied(
    response: OffsetCommitResponse | ApiError, denied: list[OffsetCommitRequestTopic]
) -> OffsetCommitResponse | ApiError:
    if not isinstance(response, ApiError):
        response.topics.extend(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in denied)
    return response


def _refused(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            for partition in topic.partitions
        ],
    )
