"""TxnOffsetCommit: offsets that count when the producer's transaction is committed, and never if it is not.

To the transaction, the group's partition of `__consumer_offsets` is one of those it writes to: its coordinator is asked
before the first commit, as before the first record elsewhere.
"""

from typing import TYPE_CHECKING

from quire.coordinators.runtime.shard import Shard
from quire.node.authorizer import Operation, Resource
from quire.node.context import Context
from quire.node.group_requests import caller_of, check_group, may_read_topic
from quire.node.offset_portions import are_many, in_portions
from quire.node.slices import Work
from quire.node.transaction_gate import Producer, Verdicts, admit, give_back
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

Answer = Pending[TxnOffsetCommitResponse | ApiError]


def handle(node: "Node", context: Context, request: TxnOffsetCommitRequest) -> Answer | Work[TxnOffsetCommitResponse]:
    check_group(node, context, request.group_id, Operation.READ)
    if not node.authorizer.allows(context, Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id):
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


def _commit(node: "Node", context: Context, request: TxnOffsetCommitRequest) -> Answer:
    runtime = node.coordinators.groups
    index = runtime.partition_for(request.group_id)
    shard = runtime.shard(index)
    partition = node.partitions.leader(runtime.topic, None, index)
    in_log = partition.log.producer_state.has_open_transaction(request.producer_id, request.producer_epoch)
    if in_log and shard.machine.is_in_transaction(request.producer_id):  # And its marker is not on the way there.
        return _run(context, shard, partition, request)
    producer = Producer(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        bumps_epoch=context.api_version >= FIRST_VERSION_OF_TRANSACTION_PROTOCOL_2,
        knows_abortable=context.api_version >= FIRST_VERSION_THAT_KNOWS_ABORTABLE,
    )
    asked = admit(node, producer, [partition])
    # Not to be given up, even if the client goes: what it sent next must not be handled without this.
    answer: Answer = Pending()

    def go_on(verdicts: Verdicts) -> None:
        verdict = verdicts[partition]
        if isinstance(verdict, ApiError):
            answer.complete(_as_a_group_says_it(verdict))
            return
        if not partition.admissions.holds(verdict):
            answer.complete(ApiError(ErrorCode.INVALID_TXN_STATE, "the transaction has ended meanwhile"))
            return
        try:
            _run(context, shard, partition, request).when_done(answer.complete)
        except ApiError as error:
            answer.complete(error)
        finally:
            give_back(verdicts)

    asked.when_done(go_on)
    return answer


def _commit_in_portions(
    node: "Node", context: Context, request: TxnOffsetCommitRequest, denied: list[TxnOffsetCommitRequestTopic]
) -> Work[TxnOffsetCommitResponse]:
    response = yield from in_portions(request, lambda portion: _commit(node, context, portion))
    response.topics.extend(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in denied)
    return response


def _run(
    context: Context, shard: "Shard[GroupMachine]", partition: Partition, request: TxnOffsetCommitRequest
) -> Answer:
    # Asked before the shard writes: an append that is refused would make it start over.
    partition.log.producer_state.check_epoch(request.producer_id, request.producer_epoch)
    caller = caller_of(context)
    return shard.run(lambda machine, now_ms: machine.txn_offset_commit(request, caller, now_ms))


def _as_a_group_says_it(error: ApiError) -> ApiError:
    """A group's clients know its own word for trying again."""
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
