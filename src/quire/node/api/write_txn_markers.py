"""WriteTxnMarkers: a transaction's coordinator ends it in the partitions that it wrote to.

In a partition of `__consumer_offsets` the group coordinator has to hear of it too, so there the marker goes through the
shard. Every marker is answered when it is committed; one that was written before is answered without writing it again.
"""

from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING

from quire.node.authorizer import CLUSTER_NAME, Operation, Resource
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
        node.authorizer.allows(context, Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME)
        or node.authorizer.allows(context, Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME)
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
        # Its coordinators alone write there, each where it expects its log to end. Were it part of a transaction, then
        # of one that somebody forged; with this answer the transaction ends without it.
        return completed(ApiError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"there are no transactions in {topic}"))
    try:
        partition = node.partitions.leader(topic, None, index)
        _check_coordinator(node, marker, partition)
        if topic == GROUP_OFFSETS:
            shard = node.coordinators.groups.shard(index)
            is_new = partition.log.producer_state.check_end(
                marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, bumps_epoch=bumps_epoch
            )
            if not is_new:
                return completed(None)
            # Now, not when the marker is appended: whatever the shard is asked for from here on comes behind it.
            partition.admissions.end(marker.producer_id, marker.producer_epoch, bumps_epoch=bumps_epoch)
            return shard.end_transaction(
                marker.producer_id,
                marker.producer_epoch,
                committed=marker.transaction_result,
                coordinator_epoch=marker.coordinator_epoch,
            )
        end_offset = partition.end_transaction(
            marker.producer_id,
            marker.producer_epoch,
            committed=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            bumps_epoch=bumps_epoch,
            now_ms=node.clock.now_ms(),
        )
    except ApiError as error:
        return completed(error)
    return when_committed(partition, end_offset, node.clock, TIMEOUT_MS)


def _check_coordinator(node: "Node", marker: WritableTxnMarker, partition: Partition) -> None:
    """A marker of a coordinator that there is not yet would keep those that there are from ending a transaction.

    Its epoch is the leader epoch of its partition. This node may hear of an election later than the coordinator does,
    so the answer is one after which coordinators try again. Whoever aborts a hanging transaction repeats the epoch
    that the partition has seen last.
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
    """`errors` are those of the partitions, in the order of the request."""
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
