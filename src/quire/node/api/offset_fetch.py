"""OffsetFetch: the committed offsets of groups.

Versions on broker listeners:
    1   the oldest version served: offsets are kept in a topic
    2   null means all partitions; an error code for the whole request
    3   throttle time in the response
    4   a throttled client gets its response at once and waits by itself (KIP-219)
    5   leader epoch of the committed offset (KIP-320)
    6   flexible encoding
    7   the client can wait for offsets of open transactions (KIP-447)
    8   several groups in one request (KIP-709)
    9   member id and epoch of a consumer group (KIP-848)
    10  topics by id instead of by name
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import AclOperation
from quire.node.context import Context
from quire.node.entries import entries
from quire.node.group_requests import caller_of, may_read_topic, run_in_group
from quire.node.slices import Work
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from quire.node.node import Node

MANY_GROUPS = 8
"""The first version in which a request names several groups."""
ERROR_OF_THE_WHOLE = 2
"""The first version with an error code for the whole request. Before, every partition has it."""


def handle(node: "Node", context: Context, request: OffsetFetchRequest) -> Work[OffsetFetchResponse]:
    wanted = request.groups if context.api_version >= MANY_GROUPS else [_as_a_group(request)]
    # If a group is named twice, its last entry counts.
    by_id = {group.group_id: group for group in wanted}
    groups = yield from entries(
        by_id,
        lambda group_id: _fetch(node, context, by_id[group_id], request.require_stable),
        lambda group_id, error: _refused(by_id[group_id], error.code),
        lambda groups: OffsetFetchResponse(groups=groups),
        max(context.api_version, MANY_GROUPS),
    )
    if context.api_version >= MANY_GROUPS:
        return OffsetFetchResponse(groups=groups)
    return _alone(request, groups[0], context.api_version)


def refuse(request: OffsetFetchRequest, error: ApiError) -> OffsetFetchResponse:
    if request.groups:
        return OffsetFetchResponse(groups=[_refused(group, error.code) for group in request.groups])
    return _refused_alone(request, error.code)


def _fetch(
    node: "Node", context: Context, group: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup | Pending[OffsetFetchResponseGroup]:
    denied = [] if group.topics is None else [topic for topic in group.topics if not _may_see(node, context, topic)]
    if denied and group.topics is not None:
        group.topics = [topic for topic in group.topics if topic not in denied]
    caller = caller_of(context)
    try:
        answer = run_in_group(
            node,
            context,
            group.group_id,
            lambda machine, now_ms: machine.offset_fetch_group(group, require_stable, caller, now_ms),
            AclOperation.DESCRIBE,
        )
    except ApiError as error:
        return _refused(group, error.code)

    def fetched(found: OffsetFetchResponseGroup | ApiError) -> OffsetFetchResponseGroup:
        if isinstance(found, ApiError):
            return _refused(group, found.code)
        if group.topics is None:
            found.topics = [topic for topic in found.topics if may_read_topic(node, context, topic.name)]
        found.topics += (_denied(topic) for topic in denied)
        return found

    return answer.then(fetched)


def _may_see(node: "Node", context: Context, topic: OffsetFetchRequestTopics) -> bool:
    named = node.image.topic_by_id(topic.topic_id) if not topic.name else None
    return may_read_topic(node, context, named.name if named is not None else topic.name)


def _as_a_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """The group of a request before version 8, in the form of newer versions."""
    return OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if request.topics is None
        else [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ],
    )


def _alone(request: OffsetFetchRequest, group: OffsetFetchResponseGroup, api_version: int) -> OffsetFetchResponse:
    """The response in versions before 8, which have one group."""
    if group.error_code and api_version < ERROR_OF_THE_WHOLE:
        return _refused_alone(request, ErrorCode(group.error_code))
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )


def _refused(group: OffsetFetchRequestGroup, code: ErrorCode) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)


def _refused_alone(request: OffsetFetchRequest, code: ErrorCode) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_code=code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, metadata="", error_code=code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or []
        ],
    )


def _denied(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=-1,
                metadata="",
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            )
            for index in topic.partition_indexes
        ],
    )
