"""FetchSnapshot: a part of a snapshot's file, for a follower whose log ends before the leader's begins."""

from typing import NamedTuple

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import CLUSTER_METADATA
from quire.protocol.messages import fetch_snapshot as api
from quire.raft.log_summary import LogPosition
from quire.raft.replicas import ReplicaKey
from quire.raft.wire import LeaderEndpoint, check_partition, optional_id, the_only, wire_id

PART_BYTES_MAX = 1 << 20


class SnapshotPartRequest(NamedTuple):
    """The bytes from `offset` on of the snapshot at `position`, from the leader of `epoch`."""

    epoch: int
    replica: ReplicaKey
    position: LogPosition
    offset: int
    max_bytes: int = PART_BYTES_MAX


class SnapshotPart(NamedTuple):
    """Bytes of the file, whose length is `size`; or an error. Epoch and leader count in any case."""

    epoch: int
    leader_id: int | None
    size: int = 0
    content: bytes = b""
    error: ErrorCode = ErrorCode.NONE


def request(message: SnapshotPartRequest, cluster_id: str) -> api.FetchSnapshotRequest:
    partition = api.FetchSnapshotRequestPartitionSnapshot(
        current_leader_epoch=message.epoch,
        snapshot_id=api.FetchSnapshotRequestSnapshotId(
            end_offset=message.position.offset, epoch=message.position.epoch
        ),
        position=message.offset,
        replica_directory_id=message.replica.directory_id,
    )
    return api.FetchSnapshotRequest(
        cluster_id=cluster_id,
        replica_id=message.replica.id,
        max_bytes=message.max_bytes,
        topics=[api.FetchSnapshotRequestTopicSnapshot(name=CLUSTER_METADATA, partitions=[partition])],
    )


def read(request: api.FetchSnapshotRequest) -> SnapshotPartRequest:
    topic = the_only(request.topics, "topic")
    partition = the_only(topic.partitions, "partition")
    is_metadata = topic.name == CLUSTER_METADATA
    check_partition(is_metadata, partition.partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if partition.position < 0 or request.max_bytes < 1:
        raise ApiError(ErrorCode.POSITION_OUT_OF_RANGE, "a part of a snapshot begins at 0 or later and is not empty")
    return SnapshotPartRequest(
        partition.current_leader_epoch,
        ReplicaKey(request.replica_id, partition.replica_directory_id),
        LogPosition(partition.snapshot_id.epoch, partition.snapshot_id.end_offset),
        partition.position,
        min(request.max_bytes, PART_BYTES_MAX),
    )


def response(
    part: SnapshotPart, asked: SnapshotPartRequest, leader: LeaderEndpoint | None
) -> api.FetchSnapshotResponse:
    partition = api.FetchSnapshotResponsePartitionSnapshot(
        error_code=part.error,
        snapshot_id=api.FetchSnapshotResponseSnapshotId(end_offset=asked.position.offset, epoch=asked.position.epoch),
        current_leader=api.LeaderIdAndEpoch(leader_id=wire_id(part.leader_id), leader_epoch=part.epoch),
        size=part.size,
        position=asked.offset,
        unaligned_records=part.content,
    )
    return api.FetchSnapshotResponse(
        topics=[api.FetchSnapshotResponseTopicSnapshot(name=CLUSTER_METADATA, partitions=[partition])],
        node_endpoints=[] if leader is None else [api.NodeEndpoint(**leader._asdict())],
    )


def answer(response: api.FetchSnapshotResponse, asked: SnapshotPartRequest) -> SnapshotPart:
    if response.error_code != ErrorCode.NONE:
        raise ApiError(ErrorCode(response.error_code), "the snapshot was refused")
    partition = the_only(the_only(response.topics, "topic").partitions, "partition")
    content = partition.unaligned_records or b""
    assert isinstance(content, bytes | bytearray | memoryview), "received records are bytes"
    leader = partition.current_leader
    if partition.error_code == ErrorCode.NONE and partition.position != asked.offset:
        raise ApiError(ErrorCode.POSITION_OUT_OF_RANGE, f"asked for {asked.offset}, got {partition.position}")
    return SnapshotPart(
        leader.leader_epoch,
        optional_id(leader.leader_id),
        partition.size,
        bytes(content),
        ErrorCode(partition.error_code),
    )
