"""Produce: append record batches to partitions, and answer when they are as safe as the client asked.

acks=0 is never answered (an error closes the connection, the only way to tell), acks=1 when the leader has the
records, acks=all when the high watermark has passed them. Where the topic wants records on disk first (flush.messages),
both wait for that too; neither waits longer than the client's timeout. Versions from 13 on name topics by id.

Batches that take long to check wait for a job (see `batch_checks`), and the first batch of a transaction in a partition
for the transaction's coordinator (see `transaction_gate`). Whatever is waited for, all batches of a request are
appended in one go, and by what holds then.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from quire.network.handler import CloseConnection
from quire.node.authorizer import Operation, Resource
from quire.node.batch_checks import Checks
from quire.node.context import Context
from quire.node.named_twice import named_twice
from quire.node.transaction_gate import Producer, Verdicts, admit, give_back
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.fast_produce import partition_response, produce_response, topic_response
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
from quire.protocol.records.batch import CODEC_MASK, CODEC_POSITION, transactional_producer
from quire.protocol.records.expansion import Expansion, TakesLongError
from quire.replication.batch_check import BatchCheck
from quire.replication.partition import Partition
from quire.replication.waiting import CommitWait
from quire.seams import Buffer

if TYPE_CHECKING:
    from quire.node.node import Node

log = logging.getLogger("quire.produce")

Late = Pending[ProduceResponse | ApiError | CloseConnection | None]
Result = ProduceResponse | Late | None
Unsafe = list[tuple[Partition, int, PartitionProduceResponse]]

FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_WITH_LEADER_HINTS = 10
FIRST_VERSION_THAT_KNOWS_ABORTABLE = 11
FIRST_VERSION_OF_TRANSACTION_PROTOCOL_2 = 12
NO_APPEND_TIME = -1
# An enum's member is looked up anew each time it is named by its class.
WRITE = Operation.WRITE
TOPIC = Resource.TOPIC

ACKS_ALL = -1
ACKS_NONE = 0
ACKS_LEADER = 1


def handle(node: "Node", context: Context, request: ProduceRequest) -> Result:
    acks = request.acks
    if acks not in (ACKS_ALL, ACKS_NONE, ACKS_LEADER):
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks} is not one of -1, 0 and 1")
    topics = request.topic_data
    transactional_id = request.transactional_id
    if len(topics) != 1 or len(topics[0].partition_data) != 1:
        _check_named_once(topics)
        node.partitions.check_opened(
            (topic.name, topic.topic_id, data.index) for topic in topics for data in topic.partition_data
        )
    elif transactional_id is None:
        # The usual request, found out in passing.
        records = topics[0].partition_data[0].records
        if (
            records is not None
            and CODEC_POSITION < len(records) <= node.batch_checks.plain_bytes
            and not records[CODEC_POSITION] & CODEC_MASK
        ):
            try:
                return _append_all(node, context, request, None, None)
            except TakesLongError:
                return _checked(node, context, request)
    if transactional_id is not None:
        if acks != ACKS_ALL:
            raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS, "a transaction needs acks=all")
        if not node.authorizer.allows(context, WRITE, Resource.TRANSACTIONAL_ID, transactional_id):
            raise ApiError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, f"writing as {transactional_id} is not allowed"
            )
    if node.batch_checks.unneeded(node.partitions, request):
        return _append_when_admitted(node, context, request, None)
    return _checked(node, context, request)


def _checked(node: "Node", context: Context, request: ProduceRequest) -> Result:
    """Checks the batches first: at once, or as soon as it takes long, the rest of them in a job."""
    checks = _checks(node, context, request)
    expansion = Expansion(node.expansion_max_bytes, node.batch_checks.at_once_bytes)
    unchecked = list(checks.values())
    while unchecked and unchecked[0].run(expansion):
        del unchecked[0]
    if not unchecked:
        return _append_when_admitted(node, context, request, checks)

    def work() -> Result:
        return _append_when_admitted(node, context, request, checks)

    def fail(error: Exception) -> Result:
        raise error

    # Not to be given up before the append, even if the client goes: what it sent next must not be handled without this.
    pending: Late = Pending()
    release = _hold(node, request)
    node.batch_checks.run(
        unchecked,
        Expansion(expansion.left_bytes),
        lambda: _complete(pending, work, release),
        lambda error: _complete(pending, lambda: fail(error), release),
    )
    return pending


def _checks(node: "Node", context: Context, request: ProduceRequest) -> Checks:
    """One for each batch that would be appended if the records are good."""
    now_ms = node.clock.now_ms()
    checks: Checks = {}
    for topic in request.topic_data:
        for data in topic.partition_data:
            try:
                partition = _target(node, context, topic, data)
            except ApiError:
                continue  # The append will be refused for the same reason.
            if data.records is not None:
                checks[partition] = BatchCheck(data.records, partition.settings, now_ms)
    return checks


def _append_when_admitted(node: "Node", context: Context, request: ProduceRequest, checks: Checks | None) -> Result:
    """Appends; what belongs to a transaction, when its coordinator has agreed where it must be asked."""
    if request.transactional_id is None:
        return _append_all(node, context, request, None, checks)
    producer, partitions = _to_be_admitted(node, context, request, request.transactional_id)
    if producer is None:
        return _append_all(node, context, request, {}, checks)
    asked = admit(node, producer, partitions)
    if asked.done:
        return _append_admitted(node, context, request, asked.value, checks)
    # As above: not to be given up.
    pending: Late = Pending()
    release = _hold(node, request)
    asked.when_done(
        lambda verdicts: _complete(pending, lambda: _append_admitted(node, context, request, verdicts, checks), release)
    )
    return pending


def _append_admitted(
    node: "Node", context: Context, request: ProduceRequest, verdicts: Verdicts, checks: Checks | None
) -> Result:
    try:
        return _append_all(node, context, request, verdicts, checks)
    finally:
        give_back(verdicts)


def _append_all(
    node: "Node", context: Context, request: ProduceRequest, admitted: Verdicts | None, checks: Checks | None
) -> Result:
    """`admitted` is None for a request without a transactional id, `checks` for one that needs none."""
    acks = request.acks
    now_ms = node.clock.now_ms()
    unsafe: Unsafe = []
    responses = []
    for topic in request.topic_data:
        answers = []
        for data in topic.partition_data:
            answers.append(_append(node, context, topic, data, acks, now_ms, unsafe, admitted, checks))
        responses.append(topic_response(topic.name, topic.topic_id, answers))
    response = produce_response(responses)
    if acks == ACKS_NONE:
        _close_on_error(response)
        return None
    if unsafe:
        return _wait(node, unsafe, response, request)
    return response


def _hold(node: "Node", request: ProduceRequest) -> Callable[[], None]:
    """Keeps the records where they are while the connection is done with its buffer; returns what ends that."""
    pool = node.server.pool
    parts = [
        data.records
        for topic in request.topic_data
        for data in topic.partition_data
        if isinstance(data.records, memoryview)
    ]
    for part in parts:
        pool.hold(part)

    def release() -> None:
        for part in parts:
            pool.let_go(part)

    return release


def _complete(pending: Late, work: Callable[[], Result], release: Callable[[], None]) -> None:
    """Continues a request that waited. An error becomes its answer, because no caller is left to handle it."""
    answer: Result | ApiError | CloseConnection
    try:
        answer = work()
    except (ApiError, CloseConnection) as error:
        answer = error
    except Exception:
        log.exception("a produce request that waited failed unexpectedly")
        answer = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the node failed on this request")
    finally:
        release()
    if isinstance(answer, Pending):
        pending.on_abandoned = answer.abandon
        answer.when_done(pending.complete)
    else:
        pending.complete(answer)


def _to_be_admitted(
    node: "Node", context: Context, request: ProduceRequest, transactional_id: str
) -> tuple[Producer | None, list[Partition]]:
    """The partitions where the request would open a transaction. A client sends them under one producer id."""
    producer: Producer | None = None
    partitions: list[Partition] = []
    for topic in request.topic_data:
        for data in topic.partition_data:
            sender = None if data.records is None else transactional_producer(data.records)
            if sender is None:
                continue
            try:
                partition = node.partitions.leader(topic.name, topic.topic_id, data.index)
            except ApiError:
                continue  # The append will be refused for the same reason.
            if partition.log.producer_state.has_open_transaction(*sender):
                continue
            if producer is None:
                producer = Producer(
                    transactional_id,
                    *sender,
                    bumps_epoch=context.api_version >= FIRST_VERSION_OF_TRANSACTION_PROTOCOL_2,
                    knows_abortable=context.api_version >= FIRST_VERSION_THAT_KNOWS_ABORTABLE,
                )
            if sender == (producer.producer_id, producer.epoch):
                partitions.append(partition)
    return producer, partitions


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


def _check_named_once(topics: list[TopicProduceData]) -> None:
    keys = ((topic.name, topic.topic_id, data.index) for topic in topics for data in topic.partition_data)
    if named_twice(keys):
        raise ApiError(ErrorCode.INVALID_REQUEST, "a produce request must name each partition once")


def _target(node: "Node", context: Context, topic: TopicProduceData, data: PartitionProduceData) -> Partition:
    """Where a batch goes; ApiError if it may not, whatever is in it."""
    partition = node.partitions.leader(topic.name, topic.topic_id, data.index)
    if not node.authorizer.allows(context, WRITE, TOPIC, partition.topic):
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"writing to {partition.topic} is not allowed")
    if partition.is_internal:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{partition.topic} is written by the cluster alone")
    return partition


def _append(
    node: "Node",
    context: Context,
    topic: TopicProduceData,
    data: PartitionProduceData,
    acks: int,
    now_ms: int,
    unsafe: Unsafe,
    admitted: Verdicts | None,
    checks: Checks | None,
) -> PartitionProduceResponse:
    """Appends one partition's batch and answers for it; notes in `unsafe` what has to be waited for."""
    index = data.index
    records = data.records
    try:
        partition = _target(node, context, topic, data)
        if records is None:
            raise ApiError(ErrorCode.INVALID_RECORD, "a produce request needs records")
        if context.api_version < FIRST_VERSION_WITH_ZSTD:
            _check_no_zstd(records)
        verdict = admitted.get(partition) if admitted else None
        if isinstance(verdict, ApiError):
            raise verdict
        check = None if checks is None else checks.get(partition)
        if check is None and checks is not None:
            # It was led by another node, or another topic had its name, when this request's batches were checked.
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} has just come to this node: try again")
        appended = partition.append(
            records, acks == ACKS_ALL, now_ms, verdict, in_transaction=admitted is not None, check=check
        )
    except ApiError as error:
        return _refused(node, context, topic, index, error)
    settings = partition.settings if check is None else check.settings
    append_time_ms = appended.max_timestamp if settings.log_append_time else NO_APPEND_TIME
    answer = partition_response(index, appended.base_offset, append_time_ms, appended.log_start_offset)
    if not partition.may_acknowledge(appended.last_offset, acks == ACKS_ALL):
        unsafe.append((partition, appended.last_offset + 1, answer))
    return answer


def _refused(
    node: "Node", context: Context, topic: TopicProduceData, index: int, error: ApiError
) -> PartitionProduceResponse:
    answer = _failed(index, error)
    if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and context.api_version >= FIRST_VERSION_WITH_LEADER_HINTS:
        leader_id, leader_epoch = node.partitions.current_leader(topic.name, topic.topic_id, index)
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


def _wait(node: "Node", unsafe: Unsafe, response: ProduceResponse, request: ProduceRequest) -> Late:
    wait = CommitWait()
    for partition, offset, _ in unsafe:
        wait.wait_for(partition, offset, acks_all=request.acks == ACKS_ALL)
    wait.start(node.clock, request.timeout_ms)

    def judge(failed: dict[Partition, ErrorCode]) -> ProduceResponse | ApiError | CloseConnection | None:
        for partition, _, answer in unsafe:
            if partition in failed:
                answer.error_code = failed[partition]
                answer.base_offset = -1
        return response

    return wait.then(judge)
