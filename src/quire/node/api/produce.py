"""Produce: append record batches to partitions, and answer when they are as safe as the client asked.

acks=0 is never answered (an error closes the connection, the only way to tell), acks=1 when the leader has the
records, acks=all when the high watermark has passed them or the client's timeout has. Versions from 13 on name topics
by id.
"""

from typing import TYPE_CHECKING

from quire.network.connection import CloseConnection
from quire.node.authorizer import Operation, Resource
from quire.node.context import Context
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from quire.protocol.records import HEADER_BYTES, Compression, InvalidRecords, read_header
from quire.replication.partition import Partition
from quire.replication.waiting import CommitWait
from quire.seams import Buffer

if TYPE_CHECKING:
    from quire.node.node import Node

Result = ProduceResponse | Pending[ProduceResponse | None] | None
Uncommitted = list[tuple[Partition, int, PartitionProduceResponse]]

FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_WITH_LEADER_HINTS = 10
ACKS_ALL = -1
ACKS_NONE = 0
ACKS_LEADER = 1


def handle(node: "Node", context: Context, request: ProduceRequest) -> Result:
    acks = request.acks
    if acks not in (ACKS_ALL, ACKS_NONE, ACKS_LEADER):
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks} is not one of -1, 0 and 1")
    uncommitted: Uncommitted = []
    response = ProduceResponse()
    for topic in request.topic_data:
        answers = [_append(node, context, topic, data, acks, uncommitted) for data in topic.partition_data]
        response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
        )
    if acks == ACKS_NONE:
        _close_on_error(response)
        return None
    if uncommitted:
        return _wait_for_commit(node, uncommitted, response, request.timeout_ms)
    return response


def refuse(request: ProduceRequest, error: ApiError) -> ProduceResponse:
    if request.acks == ACKS_NONE:
        raise CloseConnection(f"produce with acks=0 failed: {error.message}")
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[_failed(data.index, error) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


def _append(
    node: "Node",
    context: Context,
    topic: TopicProduceData,
    data: PartitionProduceData,
    acks: int,
    uncommitted: Uncommitted,
) -> PartitionProduceResponse:
    try:
        partition = node.partitions.leader(topic.name, topic.topic_id, data.index)
        if not node.authorizer.allows(context, Operation.WRITE, Resource.TOPIC, partition.topic):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"writing to {partition.topic} is not allowed")
        if data.records is None:
            raise ApiError(ErrorCode.INVALID_RECORD, "a produce request needs records")
        if context.api_version < FIRST_VERSION_WITH_ZSTD:
            _check_no_zstd(data.records)
        appended = partition.append(data.records, acks == ACKS_ALL, node.clock.now_ms())
    except ApiError as error:
        answer = _failed(data.index, error)
        if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and context.api_version >= FIRST_VERSION_WITH_LEADER_HINTS:
            leader_id, leader_epoch = node.partitions.current_leader(topic.name, topic.topic_id, data.index)
            answer.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
        return answer
    answer = PartitionProduceResponse(
        index=data.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )
    if acks == ACKS_ALL and not partition.is_committed(appended.last_offset):
        uncommitted.append((partition, appended.last_offset + 1, answer))
    return answer


def _check_no_zstd(records: Buffer) -> None:
    """Consumers of the producer's own age could not read it."""
    if len(records) >= HEADER_BYTES and read_header(records).compression is Compression.ZSTD:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7 or newer")


def _failed(index: int, error: ApiError) -> PartitionProduceResponse:
    answer = PartitionProduceResponse(
        index=index, error_code=error.code, base_offset=-1, error_message=error.message or None
    )
    if isinstance(error, InvalidRecords):
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=number, batch_index_error_message=message)
            for number, message in error.record_errors
        ]
    return answer


def _close_on_error(response: ProduceResponse) -> None:
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                code = ErrorCode(partition.error_code).name
                raise CloseConnection(f"produce with acks=0 to {topic.name}-{partition.index} failed: {code}")


def _wait_for_commit(
    node: "Node", uncommitted: Uncommitted, response: ProduceResponse, timeout_ms: int
) -> Pending[ProduceResponse | None]:
    pending: Pending[ProduceResponse | None] = Pending()

    def finish(late: list[Partition]) -> None:
        for partition, _, answer in uncommitted:
            if partition in late:
                answer.error_code = ErrorCode.REQUEST_TIMED_OUT
                answer.base_offset = -1
        pending.complete_once(response)

    wait = CommitWait(finish)
    pending.on_abandoned = wait.cancel
    for partition, offset, _ in uncommitted:
        wait.wait_for(partition, offset)
    wait.start(node.clock, timeout_ms)
    return pending
