import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quire.client.connection import FRAME_BYTES_MAX, ROOM_BYTES, Connection, CorrelatedResponse
from quire.client.errors import ClientError, UnsupportedError
from quire.protocol import apis
from quire.protocol.codec import decode, decoder, encode
from quire.protocol.errors import ErrorCode, ProtocolError
from quire.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from quire.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from quire.protocol.messages.headers import RequestHeader, ResponseHeader
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.protocol.messages.produce import ProduceRequest
from quire.protocol.schema import Message

API_VERSIONS, METADATA, FETCH, PRODUCE = 18, 3, 1, 0


def give(connection: Connection, data: bytes, step: int | None = None) -> list[CorrelatedResponse]:
    """Delivers bytes in pieces of at most `step`."""
    answers: list[CorrelatedResponse] = []
    while data:
        room = connection.buffer()
        size = min(len(room), len(data), step or len(data))
        room[:size] = data[:size]
        answers += connection.received(size)
        data = data[size:]
    return answers


def response_frame(correlation_id: int, message: Message, version: int) -> bytes:
    header_version = apis.response_header_version(message.API_KEY, version)
    payload = encode(ResponseHeader(correlation_id=correlation_id), header_version) + encode(message, version)
    return len(payload).to_bytes(4, "big") + payload


def sent(connection: Connection) -> list[tuple[RequestHeader, Message]]:
    """The sent request, decoded as a broker would decode it."""
    data, connection.outgoing = b"".join(connection.outgoing), []
    found = []
    while data:
        size = int.from_bytes(data[:4], "big")
        frame, data = memoryview(data[4 : 4 + size]), data[4 + size :]
        api_key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
        header, position = decoder(RequestHeader, apis.request_header_version(api_key, version))(frame, 0)
        found.append((header, decode(apis.request_class(api_key), frame, version, position)))
    return found


def versions(**ranges: tuple[int, int]) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=apis.api_key(name), min_version=low, max_version=high)
            for name, (low, high) in ranges.items()
        ]
    )


def negotiated(**ranges: tuple[int, int]) -> Connection:
    connection = Connection("tester")
    connection.start()
    ((header, _),) = sent(connection)
    give(connection, response_frame(header.correlation_id, versions(**ranges), header.request_api_version))
    assert connection.ready
    return connection


def test_the_first_request_asks_for_versions_in_the_newest_version_and_names_the_client() -> None:
    connection = Connection("tester", software_version="1.2")
    connection.start()
    ((header, request),) = sent(connection)
    assert (header.request_api_key, header.request_api_version) == (API_VERSIONS, 4)
    assert header.client_id == "tester"
    assert request == ApiVersionsRequest(client_software_name="quire", client_software_version="1.2")
    assert not connection.ready


def test_a_broker_that_knows_only_older_versions_is_asked_again_in_one_it_knows() -> None:
    connection = Connection("tester")
    connection.start()
    ((first, _),) = sent(connection)
    refusal = versions(ApiVersions=(0, 2))
    refusal.error_code = ErrorCode.UNSUPPORTED_VERSION
    give(connection, response_frame(first.correlation_id, refusal, 0))
    assert not connection.ready
    ((second, _),) = sent(connection)
    assert second.request_api_version == 2
    give(connection, response_frame(second.correlation_id, versions(Metadata=(0, 8)), 2))
    assert connection.version_for(METADATA) == 8


def test_a_refusal_without_ranges_falls_back_to_version_zero() -> None:
    connection = Connection("tester")
    connection.start()
    ((first, _),) = sent(connection)
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    give(connection, response_frame(first.correlation_id, refusal, 0))
    ((second, _),) = sent(connection)
    assert second.request_api_version == 0


def test_a_broker_that_refuses_version_zero_too_is_given_up() -> None:
    connection = Connection("tester")
    connection.start()
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    ((first, _),) = sent(connection)
    give(connection, response_frame(first.correlation_id, refusal, 0))
    ((second, _),) = sent(connection)
    with pytest.raises(ClientError, match="UNSUPPORTED_VERSION"):
        give(connection, response_frame(second.correlation_id, refusal, 0))


@pytest.mark.parametrize(
    ("theirs", "chosen"), [((0, 5), 5), ((0, 99), 13), ((9, 13), 9 + 4), ((13, 20), 13), ((0, 0), 0)]
)
def test_the_highest_version_both_sides_speak_is_used(theirs: tuple[int, int], chosen: int) -> None:
    connection = negotiated(Metadata=theirs)
    assert connection.version_for(METADATA) == chosen
    connection.send(MetadataRequest(topics=[]))
    assert sent(connection)[0][0].request_api_version == chosen


def test_an_api_the_broker_does_not_offer_is_an_error_that_names_it() -> None:
    with pytest.raises(UnsupportedError, match="Fetch"):
        negotiated(Metadata=(0, 13)).send(FetchRequest())


def test_ranges_that_do_not_meet_are_an_error_that_names_both() -> None:
    with pytest.raises(UnsupportedError, match="Metadata 90 to 99, this client 0 to 13"):
        negotiated(Metadata=(90, 99)).version_for(METADATA)


def test_a_request_is_sent_in_the_highest_version_that_can_carry_it() -> None:
    connection = negotiated(Metadata=(0, 12))
    connection.send(MetadataRequest(topics=[]), versions=(8, 9))
    ((header, _),) = sent(connection)
    assert header.request_api_version == 9
    with pytest.raises(UnsupportedError, match="Metadata 0 to 12, this client 13 to 14"):
        connection.send(MetadataRequest(topics=[]), versions=(13, 14))


def test_answers_come_in_the_order_of_the_requests_with_their_correlation_ids() -> None:
    connection = negotiated(Metadata=(0, 13))
    first, second = connection.send(MetadataRequest(topics=[])), connection.send(MetadataRequest(topics=None))
    assert first != second and connection.in_flight == 2
    frames = response_frame(first, MetadataResponse(cluster_id="one"), 13)
    frames += response_frame(second, MetadataResponse(cluster_id="two"), 13)
    answers = give(connection, frames)
    assert [(answer.correlation_id, answer.message.cluster_id) for answer in answers] == [  # type: ignore[attr-defined]
        (first, "one"),
        (second, "two"),
    ]
    assert connection.in_flight == 0


def test_an_answer_to_the_wrong_question_breaks_the_connection() -> None:
    connection = negotiated(Metadata=(0, 13))
    correlation_id = connection.send(MetadataRequest(topics=[]))
    with pytest.raises(ProtocolError, match=f"not {correlation_id}"):
        give(connection, response_frame(correlation_id + 7, MetadataResponse(), 13))


def test_an_unsolicited_response_breaks_the_connection() -> None:
    with pytest.raises(ProtocolError, match="without a request"):
        give(negotiated(Metadata=(0, 13)), response_frame(1, MetadataResponse(), 13))


def test_produce_without_acknowledgement_waits_for_no_answer() -> None:
    connection = negotiated(Produce=(3, 13), Metadata=(0, 13))
    connection.send(ProduceRequest(acks=0), answered=False)
    asked = connection.send(MetadataRequest(topics=[]))
    (answer,) = give(connection, response_frame(asked, MetadataResponse(), 13))
    assert answer.correlation_id == asked


@pytest.mark.parametrize("length", [-1, 0, 3, FRAME_BYTES_MAX + 1, 0x48545450])
def test_a_length_no_frame_can_have_is_refused_before_memory_is_set_aside(length: int) -> None:
    connection = negotiated(Metadata=(0, 13))
    with pytest.raises(ProtocolError, match="is this a Kafka port"):
        give(connection, length.to_bytes(4, "big", signed=length < 0))
    assert len(connection.buffer()) <= ROOM_BYTES


def fetch_response(size: int) -> FetchResponse:
    part = PartitionData(partition_index=0, records=bytes(i % 251 for i in range(size)))
    return FetchResponse(responses=[FetchableTopicResponse(topic_id=b"i" * 16, partitions=[part])])


@settings(deadline=None)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 100, 5000, ROOM_BYTES - 100, ROOM_BYTES, 3 * ROOM_BYTES]), max_size=4),
    step=st.sampled_from([1000, 4096, 60_000, 10_000_000]),
)
def test_frames_of_any_size_arrive_whole_however_they_are_cut(sizes: list[int], step: int) -> None:
    connection = negotiated(Fetch=(4, 18))
    messages = [fetch_response(size) for size in sizes]
    frames = b"".join(response_frame(connection.send(FetchRequest()), message, 18) for message in messages)
    assert [answer.message for answer in give(connection, frames, step)] == messages


def test_frames_that_arrive_byte_by_byte_are_put_together() -> None:
    connection = negotiated(Fetch=(4, 18))
    message = fetch_response(50)
    frame = response_frame(connection.send(FetchRequest()), message, 18)
    assert [answer.message for answer in give(connection, frame, 1)] == [message]


def test_records_of_an_answer_stay_what_they_were_when_more_arrives() -> None:
    connection = negotiated(Fetch=(4, 18))
    kept = []
    for size in (200, 2 * ROOM_BYTES, 300):
        message = fetch_response(size)
        (answer,) = give(connection, response_frame(connection.send(FetchRequest()), message, 18))
        kept.append((answer.message, message))
    for received, original in kept:
        assert received == original
