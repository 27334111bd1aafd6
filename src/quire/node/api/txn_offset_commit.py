"""TxnOffsetCommit: stores offsets that become valid when the producer's transaction is committed.

The group's partition of `__consumer_offsets` is one of the partitions of the transaction. The handler therefore asks
the transaction's coordinator before the first commit, as produce does before the first record.

Versions on broker listeners:
    0  the first version
    1  a throttled client gets its response at once and waits by itself (KIP-219)
    2  leader epoch of the committed offset (KIP-320)
    3  flexible encoding; member and generation, so that the group can fence the commit (KIP-447)
    4  the client knows TRANSACTION_ABORTABLE (KIP-890)
    5  transaction protocol 2: the broker adds the partition to the transaction (KIP-890)
"""

from typing import TYPE_CHECKING

from quire.coordinators.runtime.shard import Shard
from quire.node.authorizer import AclOperation, Resource
from quire.node.context import Context
from quire.node.group_requests import caller_of, check_group, may_read_topic
from quire.node.offset_portions import are_many, in_portions
from quire.node.slices import Work
from quire.node.transaction_verification import TransactionalProducer, Verifications, release_guards, verify
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from quire.replication.partition import Partition

if TYPE_CHECKING:
    from quire.coordinators.group.machine import GroupMachine
    from quire.node.node import Node

FIRST_VERSION_THAT_KNOWS_ABORTABLE = 4
FIRST_VERSION_OF_TRANSACTION_PROTOCOL_2 = 5

PendingTxnOffsetCommitResponse = Pending[TxnOffsetCommitResponse | ApiError]


def handle(
    node: "Node", context: Context, request: TxnOffsetCommitRequest
) -> PendingTxnOffsetCommitResponse | Work[TxnOffsetCommitResponse]:
    check_group(node, context, request.group_id, AclOperation.READ)
    if not node.authorizer.allows(context, AclOperation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id):
        raise ApiError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, f"writing as {request.transactional_id} is not allowed"
        )
    denied = [topic for topic in request.topics if not may_read_topic(node, context, topic.name)]
    request.topics = [topic for topic in request.topics if topic not in denied]
    if are_many(request.topics):
        return _commit_in_portions(node, context, request, denied)
    answer = _commit(node, context, request)
    return answer if not denied else answer.then(lambda response: _with_denied(response, denied))


def refuse(request: TxnOffsetCommitRequest, error: ApiError) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(topics=[_refused(topic, error.code) for topic in request.topics])


def _commit(node: "Node", context: Context, request: TxnOffsetCommitRequest) -> PendingTxnOffsetCommitResponse:
    runtime = node.coordinators.groups
    index = runtime.partition_for(request.group_id)
    shard = runtime.shard(index)
    leader = node.partitions.leader(runtime.topic, None, index)
    partition = leader.partition
    in_log = partition.log.producer_state.has_open_transaction(request.producer_id, request.producer_epoch)
    # The machine no longer knows the transaction if a marker is on its way to the log.
    if in_log and shard.machine.is_in_transaction(request.producer_id):
        return _run(context, shard, partition, request)
    producer = TransactionalProducer(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        bumps_epoch=context.api_version >= FIRST_VERSION_OF_TRANSACTION_PROTOCOL_2,
        knows_abortable=context.api_version >= FIRST_VERSION_THAT_KNOWS_ABORTABLE,
    )
    verification = verify(node, producer, [leader])
    # Not abandoned if the client disconnects, because its next requests depend on this one.
    answer: PendingTxnOffsetCommitResponse = Pending()

    def append_verified(verified: Verifications) -> None:
        try:
            guard = verified[partition]
            if isinstance(guard, ApiError):
                raise _group_error(guard)
            if not leader.is_active:
                raise ApiError(ErrorCode.NOT_COORDINATOR, f"{partition} has changed its leader")
            if not guard.is_valid:
                raise ApiError(ErrorCode.INVALID_TXN_STATE, "the transaction has ended in the meantime")
            _run(context, shard, partition, request).when_done(answer.complete)
        except ApiError as error:
            answer.complete(error)
        finally:
            release_guards(verified)

    verification.when_done(append_verified)
    return answer


def _commit_in_portions(
    node: "Node", context: Context, request: TxnOffsetCommitRequest, denied: list[TxnOffsetCommitRequestTopic]
) -> Work[TxnOffsetCommitResponse]:
    response = yield from in_portions(request, lambda portion: _commit(node, context, portion), refuse)
    response.topics.extend(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in denied)
    return response


def _run(
    context: Context, shard: "Shard[GroupMachine]", partition: Partition, request: TxnOffsetCommitRequest
) -> PendingTxnOffsetCommitResponse:
    # Checked before the shard writes, because a refused append makes the shard replay its log.
    partition.log.producer_state.check_epoch(request.producer_id, request.producer_epoch)
    caller = caller_of(context)
    return shard.run(lambda machine, now_ms: machine.txn_offset_commit(request, caller, now_ms))


def _group_error(error: ApiError) -> ApiError:
    """Clients that commit offsets retry COORDINATOR_LOAD_IN_PROGRESS, but not NOT_ENOUGH_REPLICAS."""
    if error.code is ErrorCode.NOT_ENOUGH_REPLICAS:
        return ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, error.message)
    return error


def _with_denied(
    response: TxnOffsetCommitResponse | ApiError, denied: list[TxnOffsetCommitRequestTopic]
) -> TxnOffsetCommitResponse | ApiError:
    if not isinstance(response, ApiError):
        response.topics.extend(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in denied)
    return response


def _refused(topic: TxnOffsetCommitRequestTopic, code: ErrorCode) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=topic.name,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            for partition in topic.partitions
        ],
    )
