"""Every message in every version survives encoding and decoding; values that a version cannot carry are refused."""

import pytest
from hypothesis import HealthCheck, given, settings

from quire.protocol.codec import decode, decoder, encode, encoder, sliced_encoder
from quire.protocol.compile_decode import decoder_source
from quire.protocol.compile_encode import encoder_source
from quire.protocol.errors import EncodeError, ErrorCode, ProtocolError
from quire.protocol.messages.delete_topics import DeleteTopicsRequest
from quire.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from quire.protocol.messages.headers import RequestHeader, ResponseHeader
from quire.protocol.messages.list_offsets import ListOffsetsRequest
from quire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from quire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from quire.protocol.schema import Message
from quire.seams import FileSlice
from tests.protocol.every_message import EVERY_MESSAGE, EVERY_VERSION, full_message
from tests.protocol.strategies import messages


@pytest.mark.parametrize(("message", "version"), EVERY_VERSION)
def test_an_encoded_message_decodes_to_the_same_message(message: type[Message], version: int) -> None:
    @settings(max_examples=6, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(messages(message, version))
    def round_trip(original: Message) -> None:
        data = encode(original, version)
        decoded = decode(message, data, version)
        assert decoded == original
        assert encode(decoded, version) == data

    round_trip()


def test_every_version_of_every_api_is_defined() -> None:
    assert len(EVERY_VERSION) == 728


def test_a_field_that_the_version_cannot_carry_is_refused_unless_it_holds_its_default() -> None:
    encode(ListOffsetsRequest(isolation_level=0), 1)
    with pytest.raises(EncodeError, match="ListOffsetsRequest version 1: cannot carry isolation_level"):
        encode(ListOffsetsRequest(isolation_level=1), 1)


def test_an_ignorable_field_is_dropped_by_versions_that_cannot_carry_it() -> None:
    assert encode(MetadataResponse(throttle_time_ms=100), 0) == encode(MetadataResponse(), 0)


def test_a_structure_that_the_version_cannot_carry_must_hold_only_defaults() -> None:
    named = MetadataRequest(topics=[MetadataRequestTopic(name="a", topic_id=b"x" * 16)])
    assert decode(MetadataRequest, encode(named, 9), 9) == MetadataRequest(topics=[MetadataRequestTopic(name="a")])


def test_null_is_refused_in_versions_without_it() -> None:
    assert encode(MetadataRequest(topics=None), 1)
    with pytest.raises(EncodeError, match="topics must not be null"):
        encode(MetadataRequest(topics=None), 0)
    with pytest.raises(EncodeError, match="name must not be null"):
        encode(MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 9)


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(EncodeError, match="ResponseHeader version 0"):
        encode(ResponseHeader(correlation_id=2**31), 0)


def test_text_longer_than_the_protocol_allows_is_refused() -> None:
    for version in (1, 5):  # with two-byte and with compact lengths
        longest = DeleteTopicsRequest(topic_names=["x" * 32_767])
        assert decode(DeleteTopicsRequest, encode(longest, version), version) == longest
        with pytest.raises(EncodeError, match=f"^DeleteTopicsRequest version {version}: "):
            encode(DeleteTopicsRequest(topic_names=["x" * 32_768]), version)


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(EncodeError, match="versions 3 to 13, not 2"):
        encode(ProduceRequest(), 2)
    with pytest.raises(ProtocolError, match="versions 3 to 13, not 14"):
        decode(ProduceRequest, b"", 14)


def test_an_error_code_is_written_as_its_number() -> None:
    coded = FetchResponse(error_code=ErrorCode.UNKNOWN_TOPIC_ID)
    assert decode(FetchResponse, encode(coded, 13), 13).error_code == 100


def test_records_are_a_view_of_the_request() -> None:
    partition = PartitionProduceData(index=0, records=b"batch")
    request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[partition])])
    data = bytearray(encode(request, 9))
    records = decode(ProduceRequest, data, 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    data[data.index(b"batch")] = ord("c")
    assert bytes(records) == b"catch"


class FileInMemory:
    path = "memory"

    def __init__(self, data: bytes) -> None:
        self.data = data

    def pread(self, size: int, position: int) -> bytes:
        return self.data[position : position + size]


def test_records_in_parts_are_written_one_after_the_other() -> None:
    def response(records: object) -> FetchResponse:
        partition = PartitionData(partition_index=1, records=records)  # type: ignore[arg-type]
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])

    part = FileSlice(FileInMemory(b"0123456789"), 2, 5)  # type: ignore[arg-type]
    assert encode(response([b"ab", part, memoryview(b"cd")]), 12) == encode(response(b"ab23456cd"), 12)
    assert encode(response([]), 12) == encode(response(b""), 12)


def test_unknown_tags_are_kept_and_written_again_in_order() -> None:
    data = encode(RequestHeader(client_id="c"), 2)[:-1] + b"\x02\x05\x01a\x88\x01\x02bc"
    header = decode(RequestHeader, data, 2)
    assert header.unknown_tags == {5: b"a", 0x88: b"bc"}
    assert encode(header, 2) == data


def test_a_decoder_says_where_the_message_ended() -> None:
    data = encode(RequestHeader(client_id="c"), 1) + b"body"
    header, position = decoder(RequestHeader, 1)(memoryview(data), 0)
    assert header == RequestHeader(client_id="c")
    assert data[position:] == b"body"


def test_decoding_starts_at_the_offset() -> None:
    assert decode(ResponseHeader, b"skip" + encode(ResponseHeader(correlation_id=7), 1), 1, 4).correlation_id == 7


def test_an_encoder_appends() -> None:
    out = bytearray(b"before")
    encoder(ResponseHeader, 0)(ResponseHeader(correlation_id=1), out)
    assert out == b"before\x00\x00\x00\x01"


def test_codecs_are_compiled_once() -> None:
    assert decoder(RequestHeader, 2) is decoder(RequestHeader, 2)
    assert encoder(RequestHeader, 2) is encoder(RequestHeader, 2)


def test_the_source_of_a_codec_can_be_read() -> None:
    assert "topic_data" in decoder_source(ProduceRequest, 9)
    assert "topic_data" in encoder_source(ProduceRequest, 9)


@pytest.mark.parametrize("message", EVERY_MESSAGE, ids=lambda message: message.__name__)
def test_in_slices_a_message_becomes_the_same_bytes(message: type[Message]) -> None:
    version = message.VERSIONS[1]
    full = full_message(message, version)
    out = bytearray(b"head")
    for _ in sliced_encoder(message, version)(full, out):
        pass
    assert out == b"head" + encode(full, version)


def test_slices_end_after_each_element() -> None:
    request = DeleteTopicsRequest(topic_names=["a", "b", "c"])
    assert len(list(sliced_encoder(DeleteTopicsRequest, 4)(request, bytearray()))) >= 3
