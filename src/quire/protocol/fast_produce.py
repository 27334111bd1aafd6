"""Hand-tuned Produce: the request and the response of one topic and one partition, each in one call into C.

librdkafka sends one partition per request, so this shape decides the cost of a small produce. All other messages (more
partitions, a transactional id, errors, tags, malformed bytes) go to the compiled codec, which also decides what is
malformed: the functions here either recognise the whole message or change nothing.
"""

from collections.abc import Callable
from struct import Struct, error

from quire.protocol.codec import Decoder
from quire.protocol.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from quire.protocol.produce_native import read_usual
from quire.seams import Buffer, Part

_new = object.__new__
_no_id = bytes(16)

# transactional id, acks, timeout, number of topics, length of the name
_start_legacy = Struct(">hhiih").unpack_from
# number of partitions, partition, length of the records
_partition_legacy = Struct(">iii").unpack_from


def request_decoder(version: int, compiled: Decoder[ProduceRequest]) -> Decoder[ProduceRequest]:
    if version < 9:
        return _legacy_decoder(compiled)
    by_name = version < 13

    def decode(data: Buffer, position: int) -> tuple[ProduceRequest, int]:
        view = data if data.__class__ is memoryview else memoryview(data)
        return read_usual(view, position, by_name) or compiled(view, position)

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


# The default of a partition's tagged field, shared by all results of `partition_response`.
_NO_LEADER = LeaderIdAndEpoch()


def partition_response(
    index: int, base_offset: int, log_append_time_ms: int, log_start_offset: int
) -> PartitionProduceResponse:
    """A partition of a response whose records were appended, created faster than by the constructor.

    Its current leader is a shared default: replace it, do not change it.
    """
    partition = _new(PartitionProduceResponse)
    partition.index = index
    partition.error_code = 0
    partition.base_offset = base_offset
    partition.log_append_time_ms = log_append_time_ms
    partition.log_start_offset = log_start_offset
    partition.record_errors = []
    partition.error_message = None
    partition.current_leader = _NO_LEADER
    partition.unknown_tags = None
    return partition


def topic_response(
    name: str, topic_id: bytes, partition_responses: list[PartitionProduceResponse]
) -> TopicProduceResponse:
    """A topic of a response, created faster than by the constructor."""
    topic = _new(TopicProduceResponse)
    topic.name = name
    topic.topic_id = topic_id
    topic.partition_responses = partition_responses
    topic.unknown_tags = None
    return topic


def produce_response(responses: list[TopicProduceResponse]) -> ProduceResponse:
    """A response, created faster than by the constructor."""
    response = _new(ProduceResponse)
    response.responses = responses
    response.throttle_time_ms = 0
    response.node_endpoints = []
    response.unknown_tags = None
    return response


Writer = Callable[[ProduceResponse, int], list[Part]]
"""(response, correlation id) -> the parts of the whole response."""


def answer_writer(version: int, otherwise: Writer) -> Writer:
    """Writes the whole response at once, with its length, if it has the usual shape."""
    if version < 9:
        return otherwise
    names = version < 13
    # By the length of the name: the packer of the whole response, its length field, and the bytes before the name.
    shapes: dict[int, tuple[Callable[..., bytes], int, int]] = {}

    def write(response: ProduceResponse, correlation_id: int) -> list[Part]:
        topics = response.responses
        if len(topics) != 1 or len(topics[0].partition_responses) != 1:
            return otherwise(response, correlation_id)
        topic = topics[0]
        partition = topic.partition_responses[0]
        if (
            partition.current_leader is not _NO_LEADER
            or partition.error_message is not None
            or partition.record_errors
            or partition.unknown_tags is not None
            or topic.unknown_tags is not None
            or response.unknown_tags is not None
            or response.node_endpoints
        ):
            return otherwise(response, correlation_id)
        name = topic.name.encode() if names else topic.topic_id
        shape = shapes.get(len(name))
        if shape is None:
            if len(name) > 126:
                return otherwise(response, correlation_id)
            shape = shapes[len(name)] = _shape(len(name), names=names)
        pack, length, before_name = shape
        try:
            answer = pack(
                length,
                correlation_id,
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
            return otherwise(response, correlation_id)
        return [answer]

    return write


def _shape(size: int, *, names: bool) -> tuple[Callable[..., bytes], int, int]:
    """Length, correlation id; one topic, its name or id, one partition.

    The zero bytes are a null message and empty tag sections, the first of them the header's.
    """
    if names:
        packing, before_name = Struct(f">iixH{size}sBihqqqBxxxix"), 2 << 8 | size + 1
    else:
        packing, before_name = Struct(">iixB16sBihqqqBxxxix"), 2
    return packing.pack, packing.size - 4, before_name
