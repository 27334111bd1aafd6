"""For any input, a decoder returns a message or raises ProtocolError, in bounded memory."""

import random
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from struct import pack

import pytest

from quire.protocol.codec import decode, encode
from quire.protocol.errors import ProtocolError
from quire.protocol.limits import HEADER_TAGS_MAX, REQUEST_ELEMENTS_MAX, elements_max
from quire.protocol.messages.delete_topics import DeleteTopicsRequest
from quire.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from quire.protocol.messages.headers import RequestHeader
from quire.protocol.messages.list_offsets import ListOffsetsRequest
from quire.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from quire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from quire.protocol.schema import Message
from tests.protocol.every_message import EVERY_VERSION, full_message


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


@pytest.mark.parametrize(("message", "version"), EVERY_VERSION)
def test_a_message_cut_short_at_any_byte_is_refused(message: type[Message], version: int) -> None:
    data = encode(full_message(message, version), version)
    for size in range(len(data)):
        with pytest.raises(ProtocolError):
            decode(message, data[:size], version)


@pytest.mark.parametrize(("message", "version"), EVERY_VERSION)
def test_changed_bytes_decode_or_are_refused(message: type[Message], version: int) -> None:
    data = encode(full_message(message, version), version)
    chance = random.Random(f"{message.__name__} {version}")
    for _ in range(50 if data else 0):
        changed = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            changed[chance.randrange(len(changed))] = chance.choice(
                [0, 1, 0x7F, 0x80, 0xFE, 0xFF, chance.randrange(256)]
            )
        with suppress(ProtocolError):
            decode(message, changed, version)


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_decode_or_are_refused(seed: int) -> None:
    chance = random.Random(seed)
    for message, version in EVERY_VERSION:
        with suppress(ProtocolError):
            decode(message, chance.randbytes(chance.randrange(40)), version)


@pytest.mark.parametrize(("message", "version"), EVERY_VERSION)
def test_bytes_after_the_end_are_refused(message: type[Message], version: int) -> None:
    with pytest.raises(ProtocolError, match="left over"):
        decode(message, encode(full_message(message, version), version) + b"\x00", version)


HUGE = [
    pytest.param(MetadataRequest, 1, pack(">i", 2**31 - 1), id="legacy count"),
    pytest.param(MetadataRequest, 1, pack(">i", 500_001) + bytes(1_000_000), id="legacy count beyond the bytes left"),
    pytest.param(MetadataRequest, 9, varint(2**32 - 1), id="compact count"),
    pytest.param(MetadataRequest, 9, varint(2**32 - 1) + bytes(1_000_000), id="compact count with some bytes"),
    pytest.param(DeleteTopicsRequest, 1, pack(">i", 2**31 - 1) + bytes(1_000), id="legacy strings"),
    pytest.param(DeleteTopicsRequest, 4, varint(2**32 - 1) + bytes(1_000), id="compact strings"),
    pytest.param(ListOffsetsRequest, 1, pack(">ii", -1, -(2**31)), id="negative count"),
    pytest.param(ProduceRequest, 9, b"\x00" + pack(">hi", 1, 1) + varint(REQUEST_ELEMENTS_MAX + 2) + bytes(4_000_000),
                 id="more structures than one message may have"),
    pytest.param(DescribeProducersRequest, 0, b"\x02\x02x" + varint(500_001) + bytes(2_000_000), id="numbers"),
    pytest.param(DeleteTopicsRequest, 4, varint(REQUEST_ELEMENTS_MAX + 2) + bytes(1_000_000), id="strings"),
    pytest.param(RequestHeader, 2, pack(">hhih", 3, 9, 0, -1) + varint(2**32 - 1), id="count of tags"),
    pytest.param(RequestHeader, 2, pack(">hhih", 3, 9, 0, -1) + varint(HEADER_TAGS_MAX + 1) + bytes(1_000), id="tags"),
    pytest.param(RequestHeader, 2, pack(">hhih", 3, 9, 0, -1) + b"\x01\x05" + varint(2**32 - 1), id="size of a tag"),
    pytest.param(ProduceRequest, 9, varint(2**32 - 1) + b"x" * 40_000, id="string"),
    pytest.param(ProduceRequest, 3, pack(">h", 32_767), id="legacy string"),
    pytest.param(ProduceRequest, 3, pack(">hhiih", -1, 1, 1, 1, 0) + pack(">iii", 1, 0, 2**31 - 1), id="records"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "version", "data"), HUGE)
def test_a_huge_count_or_length_is_refused_before_anything_is_allocated(
    message: type[Message], version: int, data: bytes
) -> None:
    with pytest.raises(ProtocolError):  # compiles the decoder outside of the measurement
        decode(message, data, version)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode(message, data, version)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64_000


def producers_of(count: int) -> DescribeProducersRequest:
    """Two elements are the topics, the others partitions."""
    halves = [[0] * (count // 2 - 1), [0] * (count - count // 2 - 1)]
    return DescribeProducersRequest(topics=[TopicRequest(name="x", partition_indexes=half) for half in halves])


def topics_of(count: int) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name="x") for _ in range(count)])


def deletions_of(count: int) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topic_names=["x"] * count)


def produce_of(count: int) -> ProduceRequest:
    partitions = [PartitionProduceData(records=b"r") for _ in range(count - 1)]
    return ProduceRequest(topic_data=[TopicProduceData(name="x", partition_data=partitions)])


def fetch_of(count: int) -> FetchRequest:
    return FetchRequest(
        topics=[FetchTopic(topic="x", partitions=[FetchPartition(partition=i) for i in range(count - 1)])]
    )


@pytest.mark.parametrize(
    ("request_of", "version"),
    [(producers_of, 0), (topics_of, 8), (topics_of, 12), (deletions_of, 3), (deletions_of, 5)]
    + [(produce_of, version) for version in (8, 9, 12)]
    + [(fetch_of, version) for version in (11, 12)],
)
def test_the_elements_of_all_arrays_of_a_request_count_together(
    request_of: Callable[[int], Message], version: int
) -> None:
    cls = type(request_of(2))
    most = elements_max(cls.__name__)
    whole = request_of(most)
    assert decode(cls, encode(whole, version), version) == whole
    with pytest.raises(ProtocolError, match=f"more than {most} array elements and tags"):
        decode(cls, encode(request_of(most + 1), version), version)


def test_tags_count_as_elements() -> None:
    request = deletions_of(REQUEST_ELEMENTS_MAX - 2)
    request.unknown_tags = {100 + i: b"" for i in range(3)}
    with pytest.raises(ProtocolError, match=f"more than {REQUEST_ELEMENTS_MAX} array elements and tags"):
        decode(DeleteTopicsRequest, encode(request, 5), 5)
    del request.unknown_tags[100]
    assert decode(DeleteTopicsRequest, encode(request, 5), 5) == request


def test_a_response_may_have_far_more_elements_than_a_request() -> None:
    partitions = [MetadataResponsePartition(replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3]) for _ in range(20_000)]
    response = MetadataResponse(topics=[MetadataResponseTopic(name="x", partitions=partitions)])
    assert decode(MetadataResponse, encode(response, 12), 12) == response


def test_a_varint_never_ends_within_its_five_bytes() -> None:
    with pytest.raises(ProtocolError, match="32 bits"):
        decode(MetadataRequest, b"\xff" * 100, 9)


def test_a_varint_of_more_than_32_bits_is_refused() -> None:
    with pytest.raises(ProtocolError, match="32 bits"):
        decode(MetadataRequest, b"\xff\xff\xff\xff\x1f" + bytes(100), 9)


def test_a_varint_with_leading_zeros_is_accepted() -> None:
    assert decode(MetadataRequest, b"\x80\x80\x00" + b"\x01\x00\x00\x00", 9).topics is None


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(ProtocolError, match="utf-8"):
        decode(DeleteTopicsRequest, pack(">ih", 1, 2) + b"\xc3\x28" + pack(">i", 1), 1)


def test_a_null_where_none_is_allowed_is_refused() -> None:
    with pytest.raises(ProtocolError, match="topic_names must not be null"):
        decode(DeleteTopicsRequest, pack(">ii", -1, 1), 1)


def test_a_known_tag_must_have_the_size_it_says() -> None:
    whole = encode(FetchRequest(cluster_id="abc"), 12)
    assert whole.endswith(b"\x01\x00\x04\x04abc")
    with pytest.raises(ProtocolError, match="size"):
        decode(FetchRequest, whole[:-7] + b"\x01\x00\x03\x04abc", 12)


def test_the_last_of_two_equal_tags_counts_and_their_order_does_not() -> None:
    start = encode(FetchRequest(), 12)[:-1]
    decoded = decode(FetchRequest, start + b"\x03\x63\x01z\x00\x03\x03ab\x00\x03\x03cd", 12)
    assert decoded.cluster_id == "cd"
    assert decoded.unknown_tags == {0x63: b"z"}


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ProtocolError, match="versions 0 to 13, not 14"):
        decode(MetadataRequest, b"", 14)
