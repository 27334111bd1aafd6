"""ListOffsets: the offset of the first record at or after a timestamp, or one of the log's special offsets.

A search that takes long (see `quire.storage.time_lookup`) runs in a job. The handler waits for it before it starts the
next one, so a request has at most one search in the jobs, however many partitions it names.

A replica of the partition that follows it learns where the whole log ends; a consumer, where what is committed ends.

Versions on broker listeners:
    1   the oldest version served: one offset with its timestamp (KIP-79)
    2   isolation level, throttle time (KIP-98)
    3   a throttled client gets its response at once and waits by itself (KIP-219)
    4   leader epochs (KIP-320)
    5   the client knows OFFSET_NOT_AVAILABLE (KIP-207)
    6   flexible encoding
    7   the offset of the largest timestamp, -3 (KIP-734)
    8   the first offset on the local disk, -4 (KIP-405)
    9   the last offset in tiered storage, -5 (KIP-1005)
    10  timeout of reads from tiered storage (KIP-1075)
    11  the first offset not yet in tiered storage, -6 (KIP-1023)
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.node.named_twice import named_twice
from quire.node.partitions.offset_search import OffsetSearchResult
from quire.node.replicas.follower_fetch import check_follows
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
    Partition,
)

if TYPE_CHECKING:
    from quire.node.node import Node

READ_COMMITTED = 1
NEVER = 2**15
HAS_LEADER_EPOCH = 4
KNOWS_OFFSET_NOT_AVAILABLE = 5
FIRST_VERSION_OF = {
    LATEST_TIMESTAMP: 0,
    EARLIEST_TIMESTAMP: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
"""The special timestamps, each with the first version that has it."""


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
            found = _find(node, context, topic.name, wanted, committed_only, request.replica_id)
            # Without a long search, other requests may run here.
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
    node: "Node",
    context: Context,
    topic: str,
    wanted: ListOffsetsPartition,
    committed_only: bool,
    replica_id: int,
) -> OffsetSearchResult | Pending[OffsetSearchResult]:
    try:
        if not node.authorizer.allows(context, AclOperation.DESCRIBE, Resource.TOPIC, topic):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"describing {topic} is not allowed")
        if wanted.timestamp < 0 and context.api_version < FIRST_VERSION_OF.get(wanted.timestamp, NEVER):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"{wanted.timestamp} has no meaning in this version")
        partition = node.partitions.leader(topic, None, wanted.partition_index).partition
        partition.check_leader_epoch(wanted.current_leader_epoch)
        if replica_id >= 0 and wanted.timestamp == LATEST_TIMESTAMP:
            _check_replica(node, context, partition, wanted, replica_id)
            return -1, partition.log.end_offset, partition.leader_epoch
        return node.partitions.find_offset(partition, wanted.timestamp, committed_only)
    except ApiError as error:
        return error


def _check_replica(
    node: "Node", context: Context, partition: Partition, wanted: ListOffsetsPartition, replica_id: int
) -> None:
    """ApiError if the sender cannot be a follower: others must not learn what is not committed yet."""
    try:
        if not node.authorizer.allows(context, AclOperation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME):
            raise ApiError(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"{context.principal} may not ask for offsets as a broker"
            )
        check_follows(partition, replica_id, wanted.current_leader_epoch)
    except ApiError as error:
        node.refusals.refused("ListOffsets", replica_id, context.client_address, error)
        raise


def _fill(answer: ListOffsetsPartitionResponse, found: OffsetSearchResult, version: int) -> None:
    if isinstance(found, ApiError):
        answer.error_code = found.code
        if found.code == ErrorCode.OFFSET_NOT_AVAILABLE and version < KNOWS_OFFSET_NOT_AVAILABLE:
            answer.error_code = ErrorCode.LEADER_NOT_AVAILABLE
    elif found is not None:
        answer.timestamp, answer.offset, leader_epoch = found
        if version >= HAS_LEADER_EPOCH:
            answer.leader_epoch = leader_epoch
