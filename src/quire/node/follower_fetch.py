"""Fetches of brokers that say they follow a partition (a replica id from 0 on), on listeners that clients use too.

The listener does not show that the sender is a node, so each partition is judged by what the metadata says: the topic
id, the leader and its epoch, the replicas of the partition, and the registration of the sender (KIP-903). The errors
are those of Kafka. A fetch that passes all checks is refused too, because partitions are not replicated yet.
"""

from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.context import Context
from quire.node.slices import Work
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from quire.protocol.messages.fetch import PartitionData as Answer
from quire.replication.leader_epochs import NO_EPOCH

if TYPE_CHECKING:
    from quire.node.node import Node

NO_BROKER_EPOCH = -1
"""Before version 15 the request has none."""


def replica_of(request: FetchRequest) -> int:
    """The id of the follower; negative if a consumer fetches. -2 is Kafka's id of a consumer for debugging."""
    return max(request.replica_id, request.replica_state.replica_id)


def answer(node: "Node", context: Context, request: FetchRequest) -> Work[FetchResponse]:
    replica_id, peer = replica_of(request), context.client_address
    is_node = node.authorizer.allows(context, AclOperation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME)
    logged: set[ErrorCode] = set()
    topics = []
    for topic in request.topics:
        partitions = []
        for wanted in topic.partitions:
            error = _why_refused(node, request, topic, wanted) if is_node else _not_a_node(context)
            if error.code not in logged:
                logged.add(error.code)
                node.refusals.refused("Fetch", replica_id, peer, error)
            partitions.append(
                Answer(partition_index=wanted.partition, error_code=error.code, high_watermark=-1, records=b"")
            )
            yield None
        topics.append(FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=partitions))
    return FetchResponse(responses=topics)


def _not_a_node(context: Context) -> ApiError:
    return ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"{context.principal} may not fetch as a broker")


def _why_refused(node: "Node", request: FetchRequest, topic: FetchTopic, wanted: FetchPartition) -> ApiError:
    try:
        leader = node.partitions.leader(topic.topic, topic.topic_id, wanted.partition)
        leader.partition.check_leader_epoch(wanted.current_leader_epoch)
        _check_replica(node, request, leader.partition.topic_id, wanted)
    except ApiError as error:
        return error
    return ApiError(
        ErrorCode.REPLICA_NOT_AVAILABLE, f"{leader.partition} is not replicated by this node: give it one replica"
    )


def _check_replica(node: "Node", request: FetchRequest, topic_id: bytes, wanted: FetchPartition) -> None:
    replica_id = replica_of(request)
    partition = node.image.partition(topic_id, wanted.partition)
    if partition is None or replica_id not in partition.replicas or replica_id == node.node_id:
        # With an epoch the sender may know of a reassignment earlier than this node, and retries.
        knows_epoch = wanted.current_leader_epoch != NO_EPOCH
        code = ErrorCode.UNKNOWN_LEADER_EPOCH if knows_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
        raise ApiError(code, f"broker {replica_id} is no replica of partition {wanted.partition} that could follow it")
    epoch, broker = request.replica_state.replica_epoch, node.image.brokers.get(replica_id)
    if epoch != NO_BROKER_EPOCH and broker is not None and not broker.fenced and epoch < broker.epoch:
        raise ApiError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"its broker epoch is {epoch}, and broker {replica_id} has registered again with {broker.epoch}",
        )
