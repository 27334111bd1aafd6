"""Produce by hand: the request and the response of one topic and one partition, in a few calls into C.

librdkafka sends one partition per request, so the cost of this shape is the cost of a small produce. Everything else
(more partitions, a transactional id, an error to report, tags, malformed bytes) goes to the compiled codec, which also
has the last word on what is malformed: the functions here either recognise the whole message or change nothing.
"""

from collections.abc import Callable
from struct import Struct, error

from quire.protocol.codec import Decoder, Encoder
from quire.protocol.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from quire.seams import Buffer, Part

_new = object.__new__
_no_id = bytes(16)

# transactional id, acks, timeout, number of topics, length of the name or id
_start = Struct(">BhiBB").unpack_from
_start_with_id = Struct(">BhiB16s").unpack_from
_start_legacy = Struct(">hhiih").unpack_from
# number of partitions, partition, length of the records (up to three bytes of it)
_partition = Struct(">BiBBB").unpack_from
_partition_legacy = Struct(">iii").unpack_from
# the tagged fields of partition, topic and request
_no_tags = Struct(">HB").unpack_from


def request_decoder(version: int, compiled: Decoder[ProduceRequest]) -> Decoder[ProduceRequest]:
    if version < 9:
        return _legacy_decoder(compiled)
    names = version < 13

    def decode(data: Buffer, position: int) -> tuple[ProduceRequest, int]:
        view = data if data.__class__ is memoryview else memoryview(data)
        name, topic_id = "", _no_id
        try:
            if names:
                transactional_id, acks, timeout_ms, topics, size = _start(view, position)
                at = position + 8 + size
            else:
                transactional_id, acks, timeout_ms, topics, topic_id = _start_with_id(view, position)
                at, size = position + 24, 1
            if transactional_id or topics != 2 or not 0 < size < 128:
                return compiled(view, position)
            partitions, index, size, second, third = _partition(view, at)
            if partitions != 2 or not size:
                return compiled(view, position)
            if names:
                name = view[position + 9 : at].tobytes().decode()
            at += 6
            if size > 127:
                size += (second << 7) - 128
                at += 1
                if second > 127:
                    size += (third << 14) - (128 << 7)
                    at += 1
                    if third > 127:
                        return compiled(view, position)
            end = at + size - 1
            if _no_tags(view, end) != (0, 0):
                return compiled(view, position)
        except (error, UnicodeDecodeError):
            return compiled(view, position)
        return _request(acks, timeout_ms, name, topic_id, index, view[at:end]), end + 3

    return decode


def _legacy_decoder(compiled: Decoder[ProduceRequest]) -> Decoder[ProduceRequest]:
    def decode(data: Buffer, position: int) -> tuple[ProduceRequest, int]:
        view = data if data.__class__ is memoryview else memoryview(data)
        try:
            transactional_id, acks, timeout_ms, topics, size = _start_legacy(view, position)
            if size < 0:
                return compiled(view, position)
            at = position + 14 + size
            name = view[position + 14 : at].tobytes().decode()
            partitions, index, size = _partition_legacy(view, at)
            at += 12
            end = at + size
            if transactional_id != -1 or topics != 1 or partitions != 1 or size < 0 or end > len(view):
                return compiled(view, position)
        except (error, UnicodeDecodeError):
            return compiled(view, position)
        return _request(acks, timeout_ms, name, _no_id, index, view[at:end]), end

    return decode


def _request(acks: int, timeout_ms: int, name: str, topic_id: bytes, index: int, records: memoryview) -> ProduceRequest:
    partition = _new(PartitionProduceData)
    partition.index = index
    partition.records = records
    partition.unknown_tags = None
    topic = _new(TopicProduceData)
    topic.name = name
    topic.topic_id = topic_id
    topic.partition_data = [partition]
    topic.unknown_tags = None
    request = _new(ProduceRequest)
    request.transactional_id = None
    request.acks = acks
    request.timeout_ms = timeout_ms
    request.topic_data = [topic]
    request.unknown_tags = None
    return request


# The default of a partition's tagged field, shared by what `partition_response` makes.
_NO_LEADER = LeaderIdAndEpoch()


def partition_response(
    index: int, error_code: int, base_offset: int, log_append_time_ms: int, log_start_offset: int
) -> PartitionProduceResponse:
    """A partition of a response, made faster than by the constructor.

    Its current leader is a shared default: replace it, do not change it.
    """
    partition = _new(PartitionProduceResponse)
    partition.index = index
    partition.error_code = error_code
    partition.base_offset = base_offset
    partition.log_append_time_ms = log_append_time_ms
    partition.log_start_offset = log_start_offset
    partition.record_errors = []
    partition.error_message = None
    partition.current_leader = _NO_LEADER
    partition.unknown_tags = None
    return partition


def response_encoder(version: int, compiled: Encoder[ProduceResponse]) -> Encoder[ProduceResponse]:
    if version < 9:
        return compiled  # as fast as can be: two packs and the name
    names = version < 13
    # By length of the name: how to pack the whole response, and what stands before the name.
    shapes: dict[int, tuple[Callable[..., bytes], int]] = {}

    def encode(response: ProduceResponse, out: bytearray, parts: list[Part] | None = None, /) -> None:
        topics = response.responses
        if len(topics) != 1 or len(topics[0].partition_responses) != 1:
            return compiled(response, out, parts)
        topic = topics[0]
        partition = topic.partition_responses[0]
        leader = partition.current_leader
        if (
            partition.error_message is not None
            or partition.record_errors
            or leader.leader_id != -1
            or leader.leader_epoch != -1
            or leader.unknown_tags is not None
            or partition.unknown_tags is not None
            or topic.unknown_tags is not None
            or response.unknown_tags is not None
            or response.node_endpoints
        ):
            return compiled(response, out, parts)
        name = topic.name.encode() if names else topic.topic_id
        size = len(name)
        if size > 126:
            return compiled(response, out, parts)
        if size not in shapes:
            shapes[size] = _shape(size, names=names)
        pack, before_name = shapes[size]
        try:
            out += pack(
                before_name,
                name,
                2,  # one partition
                partition.index,
                partition.error_code,
                partition.base_offset,
                partition.log_append_time_ms,
                partition.log_start_offset,
                1,  # no record errors
                response.throttle_time_ms,
            )
        except error:
            return compiled(response, out, parts)
        if parts is not None:
            parts.append(out)
        return None

    return encode


def _shape(size: int, *, names: bool) -> tuple[Callable[..., bytes], int]:
    """One topic, its name or id, one partition; the zero bytes are a null message and empty tag sections."""
    if names:
        return Struct(f">H{size}sBihqqqBxxxix").pack, 2 << 8 | size + 1
    return Struct(">B16sBihqqqBxxxix").pack, 2
