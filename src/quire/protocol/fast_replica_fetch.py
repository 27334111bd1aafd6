"""Hand-tuned Fetch, the other side: requests with one partition since version 15, responses with one since version 13.

A follower writes the one and reads the other for every record that is written alone; Quire's own consumer does so too.
All other messages go to the compiled codec, which also decides what is malformed and what cannot be expressed.
"""

from struct import Struct, error

from quire.protocol import varints
from quire.protocol.codec import Decoder, Encoder
from quire.protocol.errors import ProtocolError
from quire.protocol.fast_fetch import fetch_response, partition_data, topic_response
from quire.protocol.messages.fetch import FetchRequest, FetchResponse
from quire.seams import Buffer, Part

_no_id = bytes(16)
_NO_HIGH_WATERMARK = 0x7FFFFFFFFFFFFFFF
_NO_REPLICA = -1

# max wait, min bytes, max bytes, isolation level, session id, session epoch; one topic and its id; one partition, its
# index, leader epoch, offset, last fetched epoch, log start offset, max bytes; tags of the partition and of the topic;
# no forgotten topics, no rack; the number of the request's tags.
_request = Struct(">iiibiiB16sBiiqiqiHHB").pack
# The tag of a follower: its number and size, the replica's id and epoch, and no tags within it.
_replica = Struct(">BBiqB").pack
_NOTHING_FORGOTTEN_NO_RACK = 0x0101

# throttle time, error, session id; one topic and its id; one partition, its index, error, high watermark, last stable
# offset, log start offset; the number of aborted transactions, the preferred replica.
_response = Struct(">ihiB16sBihqqqBi").unpack_from
_RESPONSE_BYTES = 63
_no_tags = b"\0\0\0"
"""Of the partition, of the topic and of the response."""


def request_encoder(version: int, compiled: Encoder[FetchRequest]) -> Encoder[FetchRequest]:
    if version < 15:
        return compiled

    def encode(request: FetchRequest, out: bytearray, parts: list[Part] | None = None, /) -> None:
        topics, replica = request.topics, request.replica_state
        if (
            parts is not None
            or len(topics) != 1
            or len(topics[0].partitions) != 1
            or request.forgotten_topics_data
            or request.rack_id
            or request.replica_id != _NO_REPLICA
            or request.cluster_id is not None
            or request.unknown_tags is not None
            or replica.unknown_tags is not None
        ):
            compiled(request, out, parts)
            return
        topic = topics[0]
        partition = topic.partitions[0]
        if (
            topic.unknown_tags is not None
            or partition.unknown_tags is not None
            or partition.replica_directory_id != _no_id
            or partition.high_watermark != _NO_HIGH_WATERMARK
        ):
            compiled(request, out, parts)
            return
        is_follower = replica.replica_id != -1 or replica.replica_epoch != -1
        try:
            packed = _request(
                request.max_wait_ms,
                request.min_bytes,
                request.max_bytes,
                request.isolation_level,
                request.session_id,
                request.session_epoch,
                2,  # one topic
                topic.topic_id,
                2,  # one partition
                partition.partition,
                partition.current_leader_epoch,
                partition.fetch_offset,
                partition.last_fetched_epoch,
                partition.log_start_offset,
                partition.partition_max_bytes,
                0,
                _NOTHING_FORGOTTEN_NO_RACK,
                is_follower,
            )
            if is_follower:
                packed += _replica(1, 13, replica.replica_id, replica.replica_epoch, 0)
        except error:
            compiled(request, out, parts)
            return
        out += packed

    return encode


def response_decoder(version: int, compiled: Decoder[FetchResponse]) -> Decoder[FetchResponse]:
    if version < 13:
        return compiled

    def decode(data: Buffer, position: int) -> tuple[FetchResponse, int]:
        if data.__class__ is not memoryview:
            return compiled(data, position)
        try:
            (
                throttle_ms,
                code,
                session_id,
                topics,
                topic_id,
                partitions,
                index,
                partition_code,
                high_watermark,
                last_stable_offset,
                log_start_offset,
                aborted,
                preferred,
            ) = _response(data, position)
            size, at = varints.read(data, position + _RESPONSE_BYTES)
        except (error, IndexError, ProtocolError):
            return compiled(data, position)
        end = at + size - 1
        if topics != 2 or partitions != 2 or aborted > 1 or not size or data[end : end + 3] != _no_tags:
            return compiled(data, position)
        partition = partition_data(
            index,
            partition_code,
            high_watermark,
            last_stable_offset,
            log_start_offset,
            [] if aborted else None,
            data[at:end],
        )
        partition.preferred_read_replica = preferred
        topic = topic_response("", topic_id)
        topic.partitions.append(partition)
        response = fetch_response(session_id)
        response.throttle_time_ms = throttle_ms
        response.error_code = code
        response.responses.append(topic)
        return response, end + 3

    return decode
