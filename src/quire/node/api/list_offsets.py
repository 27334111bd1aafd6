"""ListOffsets: the offset of the first record at or after a time, or one of the log's landmarks.

A search that takes long (see `quire.storage.time_search`) is waited for before the next one begins: one request has no
more than one in the jobs, in however many partitions it asks for a time.
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import Operation, Resource
from quire.node.context import Context
from quire.node.named_twice import named_twice
from quire.node.partitions import Answer
from quire.node.slices import Work
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from quire.replication.partition import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
)

if TYPE_CHECKING:
    from quire.node.node import Node

READ_COMMITTED = 1
NEVER = 2**15
HAS_LEADER_EPOCH = 4
FIRST_VERSION_OF = {
    LATEST_TIMESTAMP: 0,
    EARLIEST_TIMESTAMP: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
"""The landmarks, each with the version from which a client may ask for it."""


def handle(node: "Node", context: Context, request: ListOffsetsRequest) -> Work[ListOffsetsResponse]:
    committed_only = request.isolation_level == READ_COMMITTED
    twice = named_twice((topic.name, wanted.partition_index) for topic in request.topics for wanted in topic.partitions)
    response = ListOffsetsResponse()
    for topic in request.topics:
        answers = ListOffsetsTopicResponse(name=topic.name)
        response.topics.append(answers)
        for wanted in topic.partitions:
            answer = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
            answers.partitions.append(answer)
            if (topic.name, wanted.partition_index) in twice:
                answer.error_code = ErrorCode.INVALID_REQUEST
                continue
            found = _find(node, context, topic.name, wanted, committed_only)
            # Without a long search this is a place to be interrupted at.
            late = yield found if isinstance(found, Pending) else None
            _fill(answer, late if isinstance(found, Pending) else found, context.api_version)
    return response


def refuse(request: ListOffsetsRequest, error: ApiError) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_failed(wanted, error.code) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _failed(wanted: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=code)


def _find(
    node: "Node", context: Context, topic: str, wanted: ListOffsetsPartition, committed_only: bool
) -> Answer | Pending[Answer]:
    try:
        if not node.authorizer.allows(context, Operation.DESCRIBE, Resource.TOPIC, topic):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"describing {topic} is not allowed")
        if wanted.timestamp < 0 and context.api_version < FIRST_VERSION_OF.get(wanted.timestamp, NEVER):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"{wanted.timestamp} has no meaning in this version")
        partition = node.partitions.leader(topic, None, wanted.partition_index)
        partition.check_leader_epoch(wanted.current_leader_epoch)
        return node.partitions.find_offset(partition, wanted.timestamp, committed_only)
    except ApiError as error:
        return error


def _fill(answer: ListOffsetsPartitionResponse, found: Answer, version: int) -> None:
    if isinstance(found, ApiError):
        answer.error_code = found.code
    elif found is not None:
        answer.timestamp, answer.offset, leader_epoch = found
        if version >= HAS_LEADER_EPOCH:
            answer.leader_epoch = leader_epoch
