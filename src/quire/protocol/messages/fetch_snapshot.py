"""FetchSnapshot, API 59: versions 0 to 1, flexible. Answered by controllers."""

from quire.protocol.schema import (
    Message,
    Struct,
    array,
    int16,
    int32,
    int64,
    nested,
    record_batches,
    string,
    uint16,
    uuid,
)
from quire.seams import Buffer, Part


class FetchSnapshotRequestSnapshotId(Struct):
    end_offset: int = int64("0+")
    epoch: int = int32("0+")


class FetchSnapshotRequestPartitionSnapshot(Struct):
    partition: int = int32("0+")
    current_leader_epoch: int = int32("0+")
    snapshot_id: FetchSnapshotRequestSnapshotId = nested(FetchSnapshotRequestSnapshotId, "0+")
    position: int = int64("0+")
    replica_directory_id: bytes = uuid("1+", tag=0, tagged="1+", ignorable=True)


class FetchSnapshotRequestTopicSnapshot(Struct):
    name: str = string("0+")
    partitions: list[FetchSnapshotRequestPartitionSnapshot] = array(FetchSnapshotRequestPartitionSnapshot, "0+")


class FetchSnapshotRequest(Message):
    API_KEY = 59
    VERSIONS = (0, 1)
    FLEXIBLE = 0

    cluster_id: str | None = string("0+", nullable="0+", tag=0, tagged="0+", default=None)
    replica_id: int = int32("0+", default=-1)
    max_bytes: int = int32("0+", default=0x7FFFFFFF)
    topics: list[FetchSnapshotRequestTopicSnapshot] = array(FetchSnapshotRequestTopicSnapshot, "0+")


class FetchSnapshotResponseSnapshotId(Struct):
    end_offset: int = int64("0+")
    epoch: int = int32("0+")


class LeaderIdAndEpoch(Struct):
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")


class FetchSnapshotResponsePartitionSnapshot(Struct):
    index: int = int32("0+")
    error_code: int = int16("0+")
    snapshot_id: FetchSnapshotResponseSnapshotId = nested(FetchSnapshotResponseSnapshotId, "0+")
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, "0+", tag=0, tagged="0+")
    size: int = int64("0+")
    position: int = int64("0+")
    unaligned_records: Buffer | list[Part] | None = record_batches("0+")


class FetchSnapshotResponseTopicSnapshot(Struct):
    name: str = string("0+")
    partitions: list[FetchSnapshotResponsePartitionSnapshot] = array(FetchSnapshotResponsePartitionSnapshot, "0+")


class NodeEndpoint(Struct):
    node_id: int = int32("1+")
    host: str = string("1+")
    port: int = uint16("1+")


class FetchSnapshotResponse(Message):
    API_KEY = 59
    VERSIONS = (0, 1)
    FLEXIBLE = 0

    throttle_time_ms: int = int32("0+", ignorable=True)
    error_code: int = int16("0+")
    topics: list[FetchSnapshotResponseTopicSnapshot] = array(FetchSnapshotResponseTopicSnapshot, "0+")
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0, tagged="1+")
