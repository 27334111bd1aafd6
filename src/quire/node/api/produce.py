"""Produce: append record batches to partitions, and answer when they are as safe as the client asked.

acks=0 is never answered (an error closes the connection, the only way to tell), acks=1 when the leader has the
records, acks=all when the high watermark has passed them. Where the topic wants records on disk first (flush.messages),
both wait for that too; neither waits longer than the client's timeout. Versions from 13 on name topics by id.
"""

from typing import TYPE_CHECKING

from quire.network.connection import CloseConnection
from quire.node.authorizer import Operation, Resource
from quire.node.context import Context
from quire.node.named_twice import named_twice
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.fast_produce import partition_response
from quire.protocol.internal_topics import is_internal
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
from quire.storage import AppendInfo

if TYPE_CHECKING:
    from quire.node.node import Node

Result = ProduceResponse | Pending[ProduceResponse | None] | None
Unsafe = list[tuple[Partition, int, PartitionProduceResponse]]

FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_WITH_LEADER_HINTS = 10
NO_APPEND_TIME = -1
ACKS_ALL = -1
ACKS_NONE = 0
ACKS_LEADER = 1


def handle(node: "Node", context: Context, request: ProduceRequest) -> Result:
    acks = request.acks
    if acks not in (ACKS_ALL, ACKS_NONE, ACKS_LEADER):
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks} is not one of -1, 0 and 1")
    _check_named_once(request)
    append = _Append(node, context, acks)
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[append(topic, data) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )
    if acks == ACKS_NONE:
        _close_on_error(response)
        return None
    if append.unsafe:
        return _wait(node, append.unsafe, response, request)
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


def _check_named_once(request: ProduceRequest) -> None:
    topics = request.topic_data
    if len(topics) == 1 and len(topics[0].partition_data) == 1:
        return
    keys = ((topic.name, topic.topic_id, data.index) for topic in topics for data in topic.partition_data)
    if named_twice(keys):
        raise ApiError(ErrorCode.INVALID_REQUEST, "a produce request must name each partition once")


class _Append:
    """Appends the batches of one request, partition by partition, and notes which of them are not safe enough yet."""

    __slots__ = ("_acks_all", "_context", "_expansion", "_node", "_now_ms", "unsafe")

    def __init__(self, node: "Node", context: Context, acks: int) -> None:
        self._node = node
        self._context = context
        self._acks_all = acks == ACKS_ALL
        self._now_ms = node.clock.now_ms()
        self._expansion = node.expansion
        self._expansion.left_bytes = node.expansion_max_bytes
        self.unsafe: Unsafe = []

    def __call__(self, topic: TopicProduceData, data: PartitionProduceData) -> PartitionProduceResponse:
        try:
            partition = self._node.partitions.leader(topic.name, topic.topic_id, data.index)
            appended = self._append(partition, data.records)
        except ApiError as error:
            return self._failed(topic, data.index, error)
        append_time_ms = appended.max_timestamp if partition.settings.log_append_time else NO_APPEND_TIME
        answer = partition_response(
            data.index, ErrorCode.NONE, appended.base_offset, append_time_ms, appended.log_start_offset
        )
        if not partition.may_acknowledge(appended.last_offset, self._acks_all):
            self.unsafe.append((partition, appended.last_offset + 1, answer))
        return answer

    def _append(self, partition: Partition, records: Buffer | None) -> AppendInfo:
        topic = partition.topic
        if not self._node.authorizer.allows(self._context, Operation.WRITE, Resource.TOPIC, topic):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"writing to {topic} is not allowed")
        if is_internal(topic):
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is written by the cluster alone")
        if records is None:
            raise ApiError(ErrorCode.INVALID_RECORD, "a produce request needs records")
        if self._context.api_version < FIRST_VERSION_WITH_ZSTD:
            _check_no_zstd(records)
        return partition.append(records, self._acks_all, self._now_ms, self._expansion)

    def _failed(self, topic: TopicProduceData, index: int, error: ApiError) -> PartitionProduceResponse:
        answer = _failed(index, error)
        wants_hint = self._context.api_version >= FIRST_VERSION_WITH_LEADER_HINTS
        if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and wants_hint:
            leader_id, leader_epoch = self._node.partitions.current_leader(topic.name, topic.topic_id, index)
            answer.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
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


def _wait(
    node: "Node", unsafe: Unsafe, response: ProduceResponse, request: ProduceRequest
) -> Pending[ProduceResponse | None]:
    pending: Pending[ProduceResponse | None] = Pending()

    def finish(failed: dict[Partition, ErrorCode]) -> None:
        for partition, _, answer in unsafe:
            if partition in failed:
                answer.error_code = failed[partition]
                answer.base_offset = -1
        pending.complete_once(response)

    wait = CommitWait(finish)
    pending.on_abandoned = wait.cancel
    for partition, offset, _ in unsafe:
        wait.wait_for(partition, offset, acks_all=request.acks == ACKS_ALL)
    wait.start(node.clock, request.timeout_ms)
    return pending
