"""WriteTxnMarkers: a transaction's coordinator ends the transaction in the partitions that it wrote to.

In a partition of `__consumer_offsets` the marker goes through the shard, because the group coordinator must apply it
too. The response is sent when all markers are committed. A marker that is already in the log is not written again.

Versions on broker listeners:
    1  the oldest version served: flexible encoding
    2  transaction protocol of the marker (KIP-1228)
"""

from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, AclOperation, Resource
from quire.node.commit import when_committed
from quire.node.context import Context
from quire.node.slices import Work
from quire.pending import Pending, completed, gather
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import GROUP_OFFSETS, TRANSACTION_STATE
from quire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from quire.replication.partition import Partition

if TYPE_CHECKING:
    from quire.node.node import Node

TRANSACTION_PROTOCOL_2 = 2
TIMEOUT_MS = 30_000


def handle(node: "Node", context: Context, request: WriteTxnMarkersRequest) -> Work[WriteTxnMarkersResponse]:
    if not (
        node.authorizer.allows(context, AclOperation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME)
        or node.authorizer.allows(context, AclOperation.ALTER, Resource.CLUSTER, CLUSTER_NAME)
    ):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "ending transactions is not allowed")
    writing = []
    for marker in request.markers:
        for topic in marker.topics:
            for index in topic.partition_indexes:
                writing.append(_write(node, marker, topic.name, index))
                yield None
    errors = yield gather(writing)
    return _answers(request, iter(errors))


def refuse(request: WriteTxnMarkersRequest, error: ApiError) -> WriteTxnMarkersResponse:
    return _answers(request, repeat(error))


def _write(node: "Node", marker: WritableTxnMarker, topic: str, index: int) -> Pending[ApiError | None]:
    bumps_epoch = marker.transaction_version >= TRANSACTION_PROTOCOL_2
    if topic == TRANSACTION_STATE:
        # Only coordinators write there, each at the offset where it expects its log to end. A transaction with this
        # topic is forged; after this error it ends without the topic.
        return completed(ApiError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"there are no transactions in {topic}"))
    try:
        leader = node.partitions.leader(topic, None, index)
        partition = leader.partition
        _check_coordinator(node, marker, partition)
        if topic == GROUP_OFFSETS:
            shard = node.coordinators.groups.shard(index)
            is_new = partition.log.producer_state.check_end(
                marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, bumps_epoch=bumps_epoch
            )
            if not is_new:
                # The one in the log may not be committed yet: its first response was lost, or another node leads.
                return when_committed(leader, leader.log.end_offset, node.clock, TIMEOUT_MS)
            # Now, and not when the marker is appended: what later requests make the shard write comes after it.
            leader.guards.revoke(marker.producer_id, marker.producer_epoch, bumps_epoch=bumps_epoch)
            return shard.end_transaction(
                marker.producer_id,
                marker.producer_epoch,
                committed=marker.transaction_result,
                coordinator_epoch=marker.coordinator_epoch,
            )
        end_offset = leader.end_transaction(
            marker.producer_id,
            marker.producer_epoch,
            committed=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            bumps_epoch=bumps_epoch,
            now_ms=node.clock.now_ms(),
        )
    except ApiError as error:
        return completed(error)
    return when_committed(leader, end_offset, node.clock, TIMEOUT_MS)


def _check_coordinator(node: "Node", marker: WritableTxnMarker, partition: Partition) -> None:
    """Refuses an epoch that no coordinator has yet, because its marker would fence the real coordinators.

    A coordinator's epoch is the leader epoch of its partition. This node may learn of an election later than the
    coordinator, so it responds with an error that coordinators retry. An administrator who aborts a hanging transaction
    repeats the last epoch that the partition has seen.
    """
    producer = partition.log.producer_state.get(marker.producer_id)
    if marker.coordinator_epoch <= max(0, -1 if producer is None else producer.coordinator_epoch):
        return
    state = node.image.topic(TRANSACTION_STATE)
    if state is None or all(marker.coordinator_epoch > each.leader_epoch for each in state.partitions.values()):
        raise ApiError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"there is no coordinator of epoch {marker.coordinator_epoch} yet"
        )


def _answers(request: WriteTxnMarkersRequest, errors: Iterator[ApiError | None]) -> WriteTxnMarkersResponse:
    """`errors` has one entry for each partition, in the order of the request."""
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=_code(next(errors)))
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _code(error: ApiError | None) -> int:
    return 0 if error is None else error.code
