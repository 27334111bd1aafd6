"""Fetch of the metadata log: records after the end of a follower's log, where the two logs diverge, or a snapshot's
id."""

from quire.protocol import uuids
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.internal_topics import CLUSTER_METADATA
from quire.protocol.messages import fetch as api
from quire.protocol.records import check_crc, decode_batch, walk_batches
from quire.raft.control_batches import read_control
from quire.raft.log_summary import LogPosition
from quire.raft.messages import Batch, FetchAnswer, FetchRequest
from quire.raft.replicas import ReplicaKey
from quire.raft.wire import LeaderEndpoint, check_partition, optional_id, the_only, wire_id

BYTES_MAX = 1 << 20
"""The most that one fetch asks for, so that appending it takes little time; a larger first batch is sent whole."""


def request(message: FetchRequest, cluster_id: str) -> api.FetchRequest:
    partition = api.FetchPartition(
        current_leader_epoch=message.epoch,
        fetch_offset=message.offset,
        last_fetched_epoch=message.last_epoch,
        partition_max_bytes=BYTES_MAX,
        replica_directory_id=message.replica.directory_id,
        high_watermark=message.high_watermark,
    )
    return api.FetchRequest(
        cluster_id=cluster_id,
        replica_state=api.ReplicaState(replica_id=message.replica.id),
        max_wait_ms=message.max_wait_ms,
        max_bytes=BYTES_MAX,
        topics=[api.FetchTopic(topic=CLUSTER_METADATA, topic_id=uuids.METADATA_TOPIC_ID, partitions=[partition])],
    )


def read(request: api.FetchRequest) -> FetchRequest:
    topic = the_only(request.topics, "topic")
    partition = the_only(topic.partitions, "partition")
    is_metadata = topic.topic == CLUSTER_METADATA or topic.topic_id == uuids.METADATA_TOPIC_ID
    check_partition(is_metadata, partition.partition)
    if partition.fetch_offset < 0 or partition.last_fetched_epoch < 0 or request.max_wait_ms < 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a fetch of the metadata log has an offset and an epoch from 0 on")
    if partition.last_fetched_epoch > partition.current_leader_epoch:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a follower's log does not end after its own epoch")
    replica_id = request.replica_state.replica_id if request.replica_id < 0 else request.replica_id
    return FetchRequest(
        partition.current_leader_epoch,
        ReplicaKey(replica_id, partition.replica_directory_id),
        partition.fetch_offset,
        partition.last_fetched_epoch,
        partition.high_watermark,
        request.max_wait_ms,
    )


def response(answer: FetchAnswer, log_start_offset: int, leader: LeaderEndpoint | None) -> api.FetchResponse:
    """The payloads of the answer's batches are their bytes in the log."""
    partition = api.PartitionData(
        error_code=answer.error,
        high_watermark=answer.high_watermark,
        log_start_offset=log_start_offset,
        current_leader=api.LeaderIdAndEpoch(leader_id=wire_id(answer.leader_id), leader_epoch=answer.epoch),
        records=b"".join(_payload(batch) for batch in answer.batches),
    )
    if answer.diverging is not None:
        partition.diverging_epoch = api.EpochEndOffset(epoch=answer.diverging.epoch, end_offset=answer.diverging.offset)
    if answer.snapshot is not None:
        partition.snapshot_id = api.SnapshotId(end_offset=answer.snapshot.offset, epoch=answer.snapshot.epoch)
    return _whole(partition, leader)


def _payload(batch: Batch) -> bytes:
    assert isinstance(batch.payload, bytes)
    return batch.payload


def _whole(partition: api.PartitionData, leader: LeaderEndpoint | None) -> api.FetchResponse:
    return api.FetchResponse(
        responses=[
            api.FetchableTopicResponse(topic=CLUSTER_METADATA, topic_id=uuids.METADATA_TOPIC_ID, partitions=[partition])
        ],
        node_endpoints=[] if leader is None else [api.NodeEndpoint(**leader._asdict())],
    )


def answer(response: api.FetchResponse, asked: FetchRequest) -> FetchAnswer:
    """Checks every batch: bytes that were damaged, or truncated while they were sent, must not be appended."""
    if response.error_code != ErrorCode.NONE:
        raise ApiError(ErrorCode(response.error_code), "the fetch was refused")
    partition = the_only(the_only(response.responses, "topic").partitions, "partition")
    epoch, leader_id = partition.current_leader.leader_epoch, optional_id(partition.current_leader.leader_id)
    if partition.error_code in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        raise ApiError(
            ErrorCode(partition.error_code),
            "it is not a controller, because it has no metadata log: name the controller listeners of other nodes in "
            "controller.quorum.*, not those for clients",
        )
    if partition.error_code != ErrorCode.NONE:
        return FetchAnswer(epoch, leader_id, asked.number, error=ErrorCode(partition.error_code))
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    return FetchAnswer(
        epoch,
        leader_id,
        asked.number,
        partition.high_watermark,
        LogPosition(diverging.epoch, diverging.end_offset) if diverging.epoch >= 0 else None,
        LogPosition(snapshot.epoch, snapshot.end_offset) if snapshot.epoch >= 0 else None,
        _batches(partition.records or b"", asked.offset),
    )


def _batches(records: object, offset: int) -> tuple[Batch, ...]:
    assert isinstance(records, bytes | bytearray | memoryview), "received records are bytes"
    content = bytes(records)
    batches: list[Batch] = []
    for header in walk_batches(content):
        check_crc(content, header)
        if header.base_offset != offset:
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"a batch at {header.base_offset} came instead of {offset}")
        offset = header.next_offset
        control = read_control(decode_batch(content, header)) if header.is_control else None
        payload = content[header.position : header.end]
        batches.append(Batch(header.base_offset, header.next_offset, header.leader_epoch, payload, control))
    return tuple(batches)
