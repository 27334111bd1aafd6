"""Hand-tuned Metadata responses, since version 9.

All partitions of a response have the same shape: a few numbers and three short lists of nodes. One `pack` writes a
whole partition; the packers, one for each combination of list lengths, are few and cached. Names repeat from response
to response, and are cached too. Unknown tags, very long lists and values out of range go to the compiled encoder.
"""

from collections.abc import Callable
from functools import lru_cache
from struct import Struct, error

from quire.protocol import varints
from quire.protocol.codec import Encoder
from quire.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition
from quire.seams import Part

_int16 = Struct(">h").pack
_int32 = Struct(">i").pack
_NO_OPERATIONS = -0x80000000
_LONGEST_LIST = 126

_ONE = (1, 1, 0)
_THREE = (3, 3, 0)
_pack_one = Struct(">hiiiBiBiBx").pack
_pack_three = Struct(">hiiiB3iB3iBx").pack

_Shapes = dict[tuple[int, int, int], Callable[..., bytes]]


class _UnusualError(Exception):
    """The message is for the compiled encoder."""


def response_encoder(version: int, compiled: Encoder[MetadataResponse]) -> Encoder[MetadataResponse]:
    if version < 9:
        return compiled
    shapes: _Shapes = {}

    def encode(response: MetadataResponse, out: bytearray, parts: list[Part] | None = None, /) -> None:
        start = len(out)
        try:
            _encode(response, version, out, shapes)
        except (_UnusualError, error):
            del out[start:]
            return compiled(response, out, parts)
        if parts is not None:
            parts.append(out)
        return None

    return encode


def _encode(response: MetadataResponse, version: int, out: bytearray, shapes: _Shapes) -> None:
    out += _int32(response.throttle_time_ms)
    out += _count(len(response.brokers))
    for broker in response.brokers:
        _refuse_tags(broker.unknown_tags)
        out += _int32(broker.node_id)
        out += _text(broker.host)
        out += _int32(broker.port)
        out += _text(broker.rack)
        out.append(0)
    out += _text(response.cluster_id)
    out += _int32(response.controller_id)
    out += _count(len(response.topics))
    for topic in response.topics:
        if topic.unknown_tags is not None or (topic.name is None and version < 12):
            raise _UnusualError
        out += _int16(topic.error_code)
        out += _text(topic.name)
        if version >= 10:
            out += topic.topic_id
        out.append(topic.is_internal)
        out += _count(len(topic.partitions))
        _encode_partitions(topic.partitions, out, shapes)
        out += _int32(topic.topic_authorized_operations)
        out.append(0)
    if version <= 10:
        out += _int32(response.cluster_authorized_operations)
    elif response.cluster_authorized_operations != _NO_OPERATIONS:
        raise _UnusualError
    if version >= 13:
        out += _int16(response.error_code)
    _refuse_tags(response.unknown_tags)
    out.append(0)


def _encode_partitions(partitions: list[MetadataResponsePartition], out: bytearray, shapes: _Shapes) -> None:
    for partition in partitions:
        if partition.unknown_tags is not None:
            raise _UnusualError
        error_code, index = partition.error_code, partition.partition_index
        leader_id, leader_epoch = partition.leader_id, partition.leader_epoch
        replicas, isr, offline = partition.replica_nodes, partition.isr_nodes, partition.offline_replicas
        lengths = len(replicas), len(isr), len(offline)
        # One replica or three, all in sync: nearly all partitions.
        if lengths == _ONE:
            out += _pack_one(error_code, index, leader_id, leader_epoch, 2, replicas[0], 2, isr[0], 1)
        elif lengths == _THREE:
            a, b, c = replicas
            d, e, f = isr
            out += _pack_three(error_code, index, leader_id, leader_epoch, 4, a, b, c, 4, d, e, f, 1)
        else:
            pack = shapes.get(lengths) or _add_shape(shapes, lengths)
            out += pack(
                error_code,
                index,
                leader_id,
                leader_epoch,
                lengths[0] + 1,
                *replicas,
                lengths[1] + 1,
                *isr,
                lengths[2] + 1,
                *offline,
            )


def _refuse_tags(tags: dict[int, bytes] | None) -> None:
    if tags is not None:
        raise _UnusualError


def _add_shape(shapes: _Shapes, lengths: tuple[int, int, int]) -> Callable[..., bytes]:
    if max(lengths) > _LONGEST_LIST:
        raise _UnusualError
    replicas, isr, offline = lengths
    pack = shapes[lengths] = Struct(f">hiiiB{replicas}iB{isr}iB{offline}ix").pack
    return pack


@lru_cache(maxsize=4096)
def _text(text: str | None) -> bytes:
    """A compact string with its length in front."""
    if text is None:
        return b"\0"
    data = text.encode()
    if len(data) > 0x7FFF:
        raise _UnusualError
    return _count(len(data)) + data


@lru_cache(maxsize=4096)
def _count(count: int) -> bytes:
    """A compact length: the length plus one, because zero is null."""
    out = bytearray()
    varints.write(out, count + 1)
    return bytes(out)
