"""Produce: appends record batches to partitions, and responds when they are as safe as the client asked.

With acks=0 there is no response; an error closes the connection, because there is no other way to report it. With
acks=1 the response is sent when the leader has the records, with acks=all when the high watermark has passed them. If
the topic requires a flush first (`flush.messages`), both wait for it too. Neither waits longer than the client's
timeout.

Batches that take long to check wait for a job (see `batch_checks`), and the first batch of a transaction in a partition
waits for the transaction's coordinator (see `transaction_verification`). All batches of a request are appended together
after these waits, according to the state at that time.

Versions 0 to 2 are advertised, because librdkafka requires Produce 0, and refused.

Versions on broker listeners:
    3   the oldest version served: transactional id, records with headers (KIP-98)
    4   the client knows KAFKA_STORAGE_ERROR (KIP-112)
    5   log start offset in the response (KIP-107)
    6   a throttled client gets its response at once and waits by itself (KIP-219)
    7   the client may send zstd (KIP-110)
    8   error messages, and the records that caused an error (KIP-467)
    9   flexible encoding
    10  the new leader with NOT_LEADER_OR_FOLLOWER (KIP-951)
    11  the client knows TRANSACTION_ABORTABLE (KIP-890)
    12  transaction protocol 2: the broker adds the partition to the transaction (KIP-890)
    13  topics by id (KIP-516)
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from quire.network.handler import CloseConnection
from quire.node.authorizer import AclOperation, Resource
from quire.node.batch_checks import Checks
from quire.node.context import Context
from quire.node.leader_hints import endpoints_of
from quire.node.named_twice import named_twice
from quire.node.transaction_verification import TransactionalProducer, Verifications, release_guards, verify
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.fast_produce import partition_response, produce_response, topic_response
from quire.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
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
from quire.replication.commit_wait import CommitWait
from quire.replication.leader_role import LeaderRole
from quire.seams import Buffer

if TYPE_CHECKING:
    from quire.node.node import Node

log = logging.getLogger("quire.produce")

PendingResponse = Pending[ProduceResponse | ApiError | CloseConnection | None]
Response = ProduceResponse | PendingResponse | None
NotSafeYet = list[tuple[LeaderRole, int, PartitionProduceResponse]]
"""Appended batches that cannot be acknowledged yet: the leader, the offset to wait for, and the response to correct."""

FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_WITH_LEADER_HINTS = 10
FIRST_VERSION_THAT_KNOWS_ABORTABLE = 11
FIRST_VERSION_OF_TRANSACTION_PROTOCOL_2 = 12
NO_APPEND_TIME = -1
# Naming a member of an enum by its class costs a look-up each time.
WRITE = AclOperation.WRITE
TOPIC = Resource.TOPIC

ACKS_ALL = -1
ACKS_NONE = 0
ACKS_LEADER = 1


def handle(node: "Node", context: Context, request: ProduceRequest) -> Response:
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
        # The usual request, recognized with the fewest look-ups.
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
        return _append_when_verified(node, context, request, None)
    return _checked(node, context, request)


def _checked(node: "Node", context: Context, request: ProduceRequest) -> Response:
    """Checks the batches first: on the event loop, and those that take long in a job."""
    checks = _checks(node, context, request)
    expansion = Expansion(node.expansion_max_bytes, node.batch_checks.at_once_bytes)
    unchecked = list(checks.values())
    while unchecked and unchecked[0].run(expansion):
        del unchecked[0]
    if not unchecked:
        return _append_when_verified(node, context, request, checks)

    def work() -> Response:
        return _append_when_verified(node, context, request, checks)

    def fail(error: Exception) -> Response:
        raise error

    # Not abandoned before the append, even if the client disconnects: its next request must come after this one.
    pending: PendingResponse = Pending()
    release = _hold(node, request)
    node.batch_checks.run(
        unchecked,
        Expansion(expansion.left_bytes),
        lambda: _complete(pending, work, release),
        lambda error: _complete(pending, lambda: fail(error), release),
    )
    return pending


def _checks(node: "Node", context: Context, request: ProduceRequest) -> Checks:
    """A check for each batch that the client may append, if its records are valid."""
    now_ms = node.clock.now_ms()
    checks: Checks = {}
    for topic in request.topic_data:
        for data in topic.partition_data:
            try:
                partition = _target(node, context, topic, data).partition
            except ApiError:
                continue  # The append will be refused for the same reason.
            if data.records is not None:
                checks[partition] = BatchCheck(data.records, partition.settings, now_ms)
    return checks


def _append_when_verified(node: "Node", context: Context, request: ProduceRequest, checks: Checks | None) -> Response:
    """Appends; the batches that begin a transaction in a partition after its coordinator has confirmed that."""
    if request.transactional_id is None:
        return _append_all(node, context, request, None, checks)
    producer, leaders = _to_be_verified(node, context, request, request.transactional_id)
    if producer is None:
        return _append_all(node, context, request, {}, checks)
    verification = verify(node, producer, leaders)
    if verification.done:
        return _append_verified(node, context, request, verification.value, checks)
    # As above: not abandoned.
    pending: PendingResponse = Pending()
    release = _hold(node, request)
    verification.when_done(
        lambda verified: _complete(pending, lambda: _append_verified(node, context, request, verified, checks), release)
    )
    return pending


def _append_verified(
    node: "Node", context: Context, request: ProduceRequest, verified: Verifications, checks: Checks | None
) -> Response:
    try:
        return _append_all(node, context, request, verified, checks)
    finally:
        release_guards(verified)


def _append_all(
    node: "Node", context: Context, request: ProduceRequest, verified: Verifications | None, checks: Checks | None
) -> Response:
    """`verified` is None for a request without a transactional id, `checks` for one that needs none."""
    acks = request.acks
    now_ms = node.clock.now_ms()
    not_safe_yet: NotSafeYet = []
    responses = []
    has_refused = False
    for topic in request.topic_data:
        answers = []
        for data in topic.partition_data:
            answer = _append(node, context, topic, data, acks, now_ms, not_safe_yet, verified, checks)
            answers.append(answer)
            if answer.error_code:
                has_refused = True
        responses.append(topic_response(topic.name, topic.topic_id, answers))
    response = produce_response(responses)
    if has_refused and context.api_version >= FIRST_VERSION_WITH_LEADER_HINTS:
        _name_leaders(node, context, response)
    if acks == ACKS_NONE:
        _close_on_error(response)
        return None
    if not_safe_yet:
        return _wait(node, not_safe_yet, response, request)
    return response


def _hold(node: "Node", request: ProduceRequest) -> Callable[[], None]:
    """Keeps the records in memory when the connection has released its buffer; the result releases them."""
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
            pool.unhold(part)

    return release


def _complete(pending: PendingResponse, work: Callable[[], Response], release: Callable[[], None]) -> None:
    """Continues a request that waited. An error becomes its answer, because no caller is left to handle it."""
    answer: Response | ApiError | CloseConnection
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


def _to_be_verified(
    node: "Node", context: Context, request: ProduceRequest, transactional_id: str
) -> tuple[TransactionalProducer | None, list[LeaderRole]]:
    """The partitions where the request would begin a transaction. A client sends them under one producer id."""
    producer: TransactionalProducer | None = None
    leaders: list[LeaderRole] = []
    for topic in request.topic_data:
        for data in topic.partition_data:
            sender = None if data.records is None else transactional_producer(data.records)
            if sender is None:
                continue
            try:
                leader = node.partitions.leader(topic.name, topic.topic_id, data.index)
            except ApiError:
                continue  # The append will be refused for the same reason.
            if leader.log.producer_state.has_open_transaction(*sender):
                continue
            if producer is None:
                producer = TransactionalProducer(
                    transactional_id,
                    *sender,
                    bumps_epoch=context.api_version >= FIRST_VERSION_OF_TRANSACTION_PROTOCOL_2,
                    knows_abortable=context.api_version >= FIRST_VERSION_THAT_KNOWS_ABORTABLE,
                )
            if sender == (producer.producer_id, producer.epoch):
                leaders.append(leader)
    return producer, leaders


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


def _target(node: "Node", context: Context, topic: TopicProduceData, data: PartitionProduceData) -> LeaderRole:
    """The leader that a batch is for; ApiError if the client may not write there, whatever is in the batch."""
    leader = node.partitions.leader(topic.name, topic.topic_id, data.index)
    partition = leader.partition
    if not node.authorizer.allows(context, WRITE, TOPIC, partition.topic):
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"writing to {partition.topic} is not allowed")
    if partition.is_internal:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"only the cluster writes to {partition.topic}")
    return leader


def _append(
    node: "Node",
    context: Context,
    topic: TopicProduceData,
    data: PartitionProduceData,
    acks: int,
    now_ms: int,
    not_safe_yet: NotSafeYet,
    verified: Verifications | None,
    checks: Checks | None,
) -> PartitionProduceResponse:
    """Appends one partition's batch and answers for it; adds it to `not_safe_yet` if it cannot be acknowledged yet."""
    index = data.index
    records = data.records
    try:
        leader = _target(node, context, topic, data)
        partition = leader.partition
        if records is None:
            raise ApiError(ErrorCode.INVALID_RECORD, "a produce request needs records")
        if context.api_version < FIRST_VERSION_WITH_ZSTD:
            _check_no_zstd(records)
        guard = verified.get(partition) if verified else None
        if isinstance(guard, ApiError):
            raise guard
        check = None if checks is None else checks.get(partition)
        if check is None and checks is not None:
            # When the batches were checked, another node led the partition or another topic had its name.
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} has just moved to this node: try again")
        appended = leader.append(
            records, acks == ACKS_ALL, now_ms, guard, in_transaction=verified is not None, check=check
        )
    except ApiError as error:
        refused = _refused(node, context, topic, index, error)
        if error.code is ErrorCode.UNKNOWN_PRODUCER_ID:
            # Without it the Java client retries the batch until it times out.
            refused.log_start_offset = leader.log.start_offset
        return refused
    settings = partition.settings if check is None else check.settings
    append_time_ms = appended.max_timestamp if settings.log_append_time else NO_APPEND_TIME
    answer = partition_response(index, appended.base_offset, append_time_ms, appended.log_start_offset)
    if not leader.may_acknowledge(appended.last_offset, acks == ACKS_ALL):
        not_safe_yet.append((leader, appended.last_offset + 1, answer))
    return answer


def _refused(
    node: "Node", context: Context, topic: TopicProduceData, index: int, error: ApiError
) -> PartitionProduceResponse:
    answer = _failed(index, error)
    if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and context.api_version >= FIRST_VERSION_WITH_LEADER_HINTS:
        leader_id, leader_epoch = node.partitions.current_leader(topic.name, topic.topic_id, index)
        answer.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
    return answer


def _name_leaders(node: "Node", context: Context, response: ProduceResponse) -> None:
    named = (answer.current_leader.leader_id for topic in response.responses for answer in topic.partition_responses)
    response.node_endpoints = endpoints_of(
        node,
        context,
        named,
        lambda node_id, host, port, rack: NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack),
    )


def _check_no_zstd(records: Buffer) -> None:
    """Consumers as old as the producer could not read it."""
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
    node: "Node", not_safe_yet: NotSafeYet, response: ProduceResponse, request: ProduceRequest
) -> PendingResponse:
    wait = CommitWait()
    for leader, offset, _ in not_safe_yet:
        wait.wait_for(leader, offset, acks_all=request.acks == ACKS_ALL)
    wait.start(node.clock, request.timeout_ms)

    def respond(failed: dict[LeaderRole, ErrorCode]) -> ProduceResponse | ApiError | CloseConnection | None:
        for leader, _, answer in not_safe_yet:
            if leader in failed:
                answer.error_code = failed[leader]
                answer.base_offset = -1
        return response

    return wait.then(respond)
