"""Hand-tuned Fetch: requests with at most one partition since version 12, responses with one since version 13.

Consumers repeat one small request all the time, mostly without a partition (in a fetch session) or with one, and so do
followers, with a tag that says who they are. All other messages (more partitions, forgotten topics, other tags, older
versions, malformed bytes) go to the compiled codec, which also decides what is malformed. File slices pass through a
response unchanged.
"""

from struct import Struct, error

from quire.protocol import codec, varints
from quire.protocol.codec import Decoder
from quire.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    PartitionData,
    ReplicaState,
    SnapshotId,
)
from quire.seams import Buffer, Part

_new = object.__new__
_no_id = bytes(16)

# The most common request as a whole, since version 15: `_start`, the topic's id, `_partition`, `_end` and the request's
# tags.
_usual = Struct(">iiibiiB16sBiiqiqiHHB").unpack_from
_USUAL_BYTES = 76
_NOTHING_FORGOTTEN_NO_RACK = 0x0101
# The only tag of a follower's request: its number and size, the replica's id and epoch, and no tags within it.
_replica = Struct(">BBiqB").unpack_from
_REPLICA_BYTES = 15
_REPLICA_TAG, _REPLICA_SIZE = 1, 13
# max wait, min bytes, max bytes, isolation level, session id, session epoch, number of topics
_start = Struct(">iiibiiB").unpack_from
_int32 = Struct(">i").unpack_from
# number of partitions; partition, leader epoch, offset, last fetched epoch, log start offset, max bytes; tags of the
# partition and of the topic
_partition = Struct(">BiiqiqiH").unpack_from
# number of forgotten topics, length of the rack
_end = Struct(">BB").unpack_from


def request_decoder(version: int, compiled: Decoder[FetchRequest]) -> Decoder[FetchRequest]:
    if version < 12:
        return compiled
    names = version == 12
    has_replica_id = version < 15

    def decode_usual(data: Buffer, position: int) -> tuple[FetchRequest, int]:
        at = position
        replica_id = -1
        try:
            if has_replica_id:
                (replica_id,) = _int32(data, at)
                at += 4
            (
                max_wait_ms,
                min_bytes,
                max_bytes,
                isolation_level,
                session_id,
                session_epoch,
                topics,
                topic_id,
                partitions,
                index,
                leader_epoch,
                offset,
                last_epoch,
                log_start,
                size,
                tags,
                end,
                request_tags,
            ) = _usual(data, at)
        except error:
            return decode(data, position)
        if topics != 2 or partitions != 2 or tags or end != _NOTHING_FORGOTTEN_NO_RACK or request_tags > 1:
            return decode(data, position)
        at += _USUAL_BYTES
        epoch = -1
        if request_tags:
            if has_replica_id:
                return decode(data, position)
            try:
                tag, tag_size, replica_id, epoch, replica_tags = _replica(data, at)
            except error:
                return decode(data, position)
            if tag != _REPLICA_TAG or tag_size != _REPLICA_SIZE or replica_tags:
                return decode(data, position)
            at += _REPLICA_BYTES
        topic = _topic("", topic_id, index, leader_epoch, offset, last_epoch, log_start, size)
        request = _request(
            replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch, [topic], ""
        )
        if request_tags:
            request.replica_id = -1
            request.replica_state.replica_id = replica_id
            request.replica_state.replica_epoch = epoch
        return request, at

    def decode(data: Buffer, position: int) -> tuple[FetchRequest, int]:
        readable = data if data.__class__ is bytes else bytes(data)
        at = position
        replica_id = -1
        try:
            if has_replica_id:
                (replica_id,) = _int32(readable, at)
                at += 4
            max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch, count = _start(readable, at)
            at += 22
            if count == 2:
                name, topic_id = "", _no_id
                if names:
                    size = readable[at]
                    if not 0 < size < 128:
                        return compiled(readable, position)
                    name = readable[at + 1 : at + size].decode()
                    at += size
                else:
                    topic_id = readable[at : at + 16]
                    at += 16
                partitions, index, leader_epoch, offset, last_epoch, log_start, size, tags = _partition(readable, at)
                at += 35
                if partitions != 2 or tags:
                    return compiled(readable, position)
                topics = [_topic(name, topic_id, index, leader_epoch, offset, last_epoch, log_start, size)]
            elif count == 1:
                topics = []
            else:
                return compiled(readable, position)
            forgotten, size = _end(readable, at)
            at += 1 + size
            if forgotten != 1 or not 0 < size < 128 or readable[at]:
                return compiled(readable, position)
            rack_id = "" if size == 1 else readable[at - size + 1 : at].decode()
        except (error, IndexError, UnicodeDecodeError):
            return compiled(readable, position)
        request = _request(
            replica_id,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            topics,
            rack_id,
        )
        return request, at + 1

    return decode if names else decode_usual


def _request(
    replica_id: int,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    isolation_level: int,
    session_id: int,
    session_epoch: int,
    topics: list[FetchTopic],
    rack_id: str,
) -> FetchRequest:
    request = _new(FetchRequest)
    request.cluster_id = None
    request.replica_id = replica_id
    request.replica_state = state = _new(ReplicaState)
    state.replica_id = state.replica_epoch = -1
    state.unknown_tags = None
    request.max_wait_ms = max_wait_ms
    request.min_bytes = min_bytes
    request.max_bytes = max_bytes
    request.isolation_level = isolation_level
    request.session_id = session_id
    request.session_epoch = session_epoch
    request.topics = topics
    request.forgotten_topics_data = []
    request.rack_id = rack_id
    request.unknown_tags = None
    return request


def _topic(
    name: str,
    topic_id: bytes,
    index: int,
    current_leader_epoch: int,
    fetch_offset: int,
    last_fetched_epoch: int,
    log_start_offset: int,
    max_bytes: int,
) -> FetchTopic:
    """One topic with one partition."""
    partition = _new(FetchPartition)
    partition.partition = index
    partition.current_leader_epoch = current_leader_epoch
    partition.fetch_offset = fetch_offset
    partition.last_fetched_epoch = last_fetched_epoch
    partition.log_start_offset = log_start_offset
    partition.partition_max_bytes = max_bytes
    partition.replica_directory_id = _no_id
    partition.high_watermark = 0x7FFFFFFFFFFFFFFF
    partition.unknown_tags = None
    topic = _new(FetchTopic)
    topic.topic = name
    topic.topic_id = topic_id
    topic.partitions = [partition]
    topic.unknown_tags = None
    return topic


# The defaults of a partition's tagged fields, shared by all results of `partition_data`.
_NOT_DIVERGING = EpochEndOffset()
_NO_LEADER = LeaderIdAndEpoch()
_NO_SNAPSHOT = SnapshotId()


def partition_data(
    partition_index: int,
    error_code: int,
    high_watermark: int,
    last_stable_offset: int,
    log_start_offset: int,
    aborted_transactions: list[AbortedTransaction] | None,
    records: Buffer | list[Part] | None,
) -> PartitionData:
    """A partition of a response, created faster than by the constructor.

    Its diverging epoch, current leader and snapshot id are shared defaults: replace them, do not change them.
    """
    partition = _new(PartitionData)
    partition.partition_index = partition_index
    partition.error_code = error_code
    partition.high_watermark = high_watermark
    partition.last_stable_offset = last_stable_offset
    partition.log_start_offset = log_start_offset
    partition.diverging_epoch = _NOT_DIVERGING
    partition.current_leader = _NO_LEADER
    partition.snapshot_id = _NO_SNAPSHOT
    partition.aborted_transactions = aborted_transactions
    partition.preferred_read_replica = -1
    partition.records = records
    partition.unknown_tags = None
    return partition


def fetch_response(session_id: int) -> FetchResponse:
    """A response without topics, created faster than by the constructor."""
    response = _new(FetchResponse)
    response.throttle_time_ms = 0
    response.error_code = 0
    response.session_id = session_id
    response.responses = []
    response.node_endpoints = []
    response.unknown_tags = None
    return response


def topic_response(topic: str, topic_id: bytes) -> FetchableTopicResponse:
    """A topic of a response without partitions, created faster than by the constructor."""
    response = _new(FetchableTopicResponse)
    response.topic = topic
    response.topic_id = topic_id
    response.partitions = []
    response.unknown_tags = None
    return response


# The whole response up to its records, whose length takes one byte, two, and so on.
_packs = [Struct(">ihiB16sBihqqqBi" + "B" * size_of_size).pack for size_of_size in range(6)]
_no_tags = b"\0\0\0"


def encode_parts(response: FetchResponse, version: int, head: bytearray | None = None) -> list[Part]:
    """`codec.encode_parts`, with a fast path for one partition whose records are one file slice, or none."""
    out = bytearray() if head is None else head
    topics = response.responses
    if version < 13 or len(topics) != 1 or len(topics[0].partitions) != 1:
        return codec.encode_parts(response, version, out)
    topic = topics[0]
    partition = topic.partitions[0]
    records = partition.records
    if (
        not isinstance(records, list)
        or len(records) > 1
        or partition.aborted_transactions
        or partition.diverging_epoch is not _NOT_DIVERGING
        or partition.current_leader is not _NO_LEADER
        or partition.snapshot_id is not _NO_SNAPSHOT
        or partition.unknown_tags is not None
        or topic.unknown_tags is not None
        or response.unknown_tags is not None
        or response.node_endpoints
    ):
        return codec.encode_parts(response, version, out)
    size = _varint(len(records[0]) + 1 if records else 1)
    try:
        out += _packs[len(size)](
            response.throttle_time_ms,
            response.error_code,
            response.session_id,
            2,  # one topic
            topic.topic_id,
            2,  # one partition
            partition.partition_index,
            partition.error_code,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log_start_offset,
            0 if partition.aborted_transactions is None else 1,
            partition.preferred_read_replica,
            *size,
        )
    except error:
        return codec.encode_parts(response, version, out)
    return [out, *records, _no_tags]


def _varint(value: int) -> tuple[int, ...]:
    if value < 1 << 7:
        return (value,)
    if value < 1 << 14:
        return value & 0x7F | 0x80, value >> 7
    if value < 1 << 21:
        return value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14
    out = bytearray()
    varints.write(out, value)
    return tuple(out)
