"""Hand-tuned Produce: the same as the compiled codec on good messages and bad bytes, and used where it applies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.protocol import codec
from quire.protocol.errors import EncodeError
from quire.protocol.fast_produce import (
    answer_writer,
    partition_response,
    produce_response,
    request_decoder,
    topic_response,
)
from quire.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from tests.protocol.every_message import full_message, versions_of
from tests.protocol.strategies import VALUES, messages
from tests.protocol.tuned import (
    QUICK,
    TOPIC_ID,
    assert_decodes_alike,
    assert_in_use,
    assert_refuses_alike,
    compiled_bytes,
    never,
)

every_version = pytest.mark.parametrize("version", versions_of(ProduceRequest))
tuned_responses = pytest.mark.parametrize("version", range(9, 14))


@st.composite
def requests_of_one_partition(draw: st.DrawFn, version: int) -> ProduceRequest:
    size = draw(st.sampled_from([0, 1, 126, 127, 128, 16_382, 16_383, 16_384, 70_000]))
    topic = TopicProduceData(partition_data=[PartitionProduceData(index=draw(VALUES["int32"]), records=bytes(size))])
    if version < 13:
        topic.name = draw(st.one_of(st.text(max_size=30), st.just("x" * 126)))
    else:
        topic.topic_id = draw(VALUES["uuid"])
    return ProduceRequest(acks=draw(VALUES["int16"]), timeout_ms=draw(VALUES["int32"]), topic_data=[topic])


def request(version: int) -> ProduceRequest:
    topic = TopicProduceData(name="topic") if version < 13 else TopicProduceData(topic_id=TOPIC_ID)
    topic.partition_data.append(PartitionProduceData(index=1, records=b"r" * 200))
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])


def response() -> ProduceResponse:
    partition = PartitionProduceResponse(index=1, base_offset=3, log_append_time_ms=4, log_start_offset=5)
    topic = TopicProduceResponse(name="topic", topic_id=TOPIC_ID, partition_responses=[partition])
    return ProduceResponse(responses=[topic], throttle_time_ms=6)


def made_quickly() -> ProduceResponse:
    made = produce_response([topic_response("topic", TOPIC_ID, [partition_response(1, 3, 4, 5)])])
    made.throttle_time_ms = 6
    return made


def compiled_answer(response: ProduceResponse, correlation_id: int, version: int) -> bytes:
    """Length, correlation id, the header's tags where it has them, and the response."""
    head = correlation_id.to_bytes(4, "big") + (b"\0" if version >= 9 else b"")
    body = head + compiled_bytes(response, version)
    return len(body).to_bytes(4, "big") + body


@every_version
def test_requests_of_any_kind_are_read_as_by_the_compiled_decoder(version: int) -> None:
    @QUICK
    @given(st.one_of(messages(ProduceRequest, version), requests_of_one_partition(version)), st.binary(max_size=3))
    def compare(request: ProduceRequest, behind: bytes) -> None:
        assert_decodes_alike(request_decoder, request, version, behind)

    compare()


@every_version
def test_malformed_requests_fare_as_with_the_compiled_decoder(version: int) -> None:
    assert_refuses_alike(request_decoder, request(version), version)
    assert_refuses_alike(request_decoder, full_message(ProduceRequest, version), version)


@every_version
def test_a_request_of_one_partition_takes_the_fast_path(version: int) -> None:
    assert_in_use(codec.decoder(ProduceRequest, version), request_decoder)

    @QUICK
    @given(requests_of_one_partition(version))
    def decode(request: ProduceRequest) -> None:
        data = compiled_bytes(request, version)
        assert request_decoder(version, never)(data, 0) == (request, len(data))

    decode()


@every_version
def test_records_are_a_view_of_the_request(version: int) -> None:
    data = bytearray(codec.encode(request(version), version))
    records = codec.decode(ProduceRequest, data, version).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is data


@every_version
def test_responses_of_any_kind_are_written_as_by_the_compiled_encoder(version: int) -> None:
    write = answer_writer(version, lambda response, number: [compiled_answer(response, number, version)])

    @QUICK
    @given(messages(ProduceResponse, version))
    def compare(response: ProduceResponse) -> None:
        assert write(response, 77) == [compiled_answer(response, 77, version)]

    compare()


@tuned_responses
def test_a_response_of_one_partition_takes_the_fast_path(version: int) -> None:
    assert answer_writer(version, never)(made_quickly(), 77) == [compiled_answer(response(), 77, version)]


@tuned_responses
def test_a_number_that_does_not_fit_is_left_to_the_compiled_encoder(version: int) -> None:
    too_large = made_quickly()
    too_large.responses[0].partition_responses[0].index = 2**31
    with pytest.raises(EncodeError, match=f"^ProduceResponse version {version}: 'i' format requires"):
        answer_writer(version, lambda response, _: [codec.encode(response, version)])(too_large, 77)


def test_a_name_too_long_for_the_fast_path_is_encoded_too() -> None:
    long = made_quickly()
    long.responses[0].name = "x" * 200
    assert answer_writer(9, lambda response, _: [codec.encode(response, 9)])(long, 77) == [compiled_bytes(long, 9)]


def test_fast_objects_equal_those_of_the_constructors() -> None:
    assert made_quickly() == response()
