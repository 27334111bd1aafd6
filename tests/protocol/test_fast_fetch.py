"""Hand-tuned Fetch: the same as the compiled codec, used where it applies; file slices pass through a response."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.protocol import codec
from quire.protocol.errors import EncodeError
from quire.protocol.fast_fetch import encode_parts, fetch_response, partition_data, request_decoder, topic_response
from quire.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
)
from quire.protocol.record_parts import PART_BYTES
from quire.seams import FileSlice, Part
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

every_version = pytest.mark.parametrize("version", versions_of(FetchRequest))
tuned_requests = pytest.mark.parametrize("version", range(12, 19))


@st.composite
def requests_of_at_most_one_partition(draw: st.DrawFn, version: int) -> FetchRequest:
    number, offset = VALUES["int32"], VALUES["int64"]
    request = FetchRequest(max_wait_ms=draw(number), min_bytes=draw(number), max_bytes=draw(number))
    request.session_id, request.session_epoch = draw(number), draw(number)
    request.rack_id = draw(st.sampled_from(["", "rack", "r" * 126]))
    if version < 15:
        request.replica_id = draw(number)
    if draw(st.booleans()):
        topic = FetchTopic(topic="topic") if version < 13 else FetchTopic(topic_id=draw(VALUES["uuid"]))
        topic.partitions.append(
            FetchPartition(
                partition=draw(number),
                current_leader_epoch=draw(number),
                fetch_offset=draw(offset),
                last_fetched_epoch=draw(number),
                log_start_offset=draw(offset),
                partition_max_bytes=draw(number),
            )
        )
        request.topics.append(topic)
        if version >= 15 and not request.rack_id and draw(st.booleans()):
            request.replica_state = ReplicaState(replica_id=draw(number), replica_epoch=draw(offset))
    return request


@every_version
def test_requests_of_any_kind_are_read_as_by_the_compiled_decoder(version: int) -> None:
    @QUICK
    @given(messages(FetchRequest, version), st.binary(max_size=3))
    def compare(request: FetchRequest, behind: bytes) -> None:
        assert_decodes_alike(request_decoder, request, version, behind)

    compare()


@every_version
def test_malformed_requests_fare_as_with_the_compiled_decoder(version: int) -> None:
    topic = FetchTopic(topic="topic", topic_id=TOPIC_ID, partitions=[FetchPartition(partition=3)])
    assert_refuses_alike(request_decoder, FetchRequest(topics=[topic]), version)
    assert_refuses_alike(request_decoder, FetchRequest(rack_id="rack"), version)
    if version >= 15:
        follower = ReplicaState(replica_id=1, replica_epoch=2)
        assert_refuses_alike(request_decoder, FetchRequest(topics=[topic], replica_state=follower), version)
    assert_refuses_alike(request_decoder, full_message(FetchRequest, version), version)


@tuned_requests
def test_a_request_of_at_most_one_partition_takes_the_fast_path(version: int) -> None:
    assert_in_use(codec.decoder(FetchRequest, version), request_decoder)

    @QUICK
    @given(requests_of_at_most_one_partition(version))
    def decode(request: FetchRequest) -> None:
        assert_decodes_alike(request_decoder, request, version)
        data = compiled_bytes(request, version)
        assert request_decoder(version, never)(data, 0) == (request, len(data))

    decode()


class FileInMemory:
    path = "memory"

    def pread(self, size: int, position: int) -> bytes:
        return bytes(range(256))[position : position + size]


def slice_of(position: int, size: int) -> FileSlice:
    return FileSlice(FileInMemory(), position, size)  # type: ignore[arg-type]


def joined(parts: list[Part]) -> bytes:
    return b"".join(part.read() if isinstance(part, FileSlice) else part for part in parts)


def response(*partitions: PartitionData) -> FetchResponse:
    topic = FetchableTopicResponse(topic="topic", topic_id=TOPIC_ID, partitions=list(partitions))
    return FetchResponse(throttle_time_ms=1, error_code=2, session_id=3, responses=[topic])


def one_slice(size: int = 100) -> PartitionData:
    return partition_data(1, 0, 10, 9, 8, None, [slice_of(0, size)])


def unusual_responses() -> list[FetchResponse]:
    """One message for each feature that the fast path leaves to the compiled encoder."""
    with_leader, with_tags, tagged_topic, tagged, with_endpoints = (response(one_slice()) for _ in range(5))
    with_leader.responses[0].partitions[0].current_leader = LeaderIdAndEpoch(leader_id=4, leader_epoch=2)
    with_tags.responses[0].partitions[0].unknown_tags = {77: b"tag"}
    tagged_topic.responses[0].unknown_tags = {77: b"tag"}
    tagged.unknown_tags = {77: b"tag"}
    with_endpoints.node_endpoints = [NodeEndpoint(node_id=4, host="h", port=1)]
    aborted = [AbortedTransaction(producer_id=1, first_offset=2)]
    several: list[Part] = [slice_of(0, 10), b"small", slice_of(9, 0), b"x" * PART_BYTES, slice_of(100, 100)]
    return [
        FetchResponse(session_id=9),
        response(),
        response(partition_data(1, 0, 10, 9, 8, aborted, [slice_of(0, 200)])),
        response(partition_data(1, 3, -1, -1, -1, None, b"")),
        response(partition_data(1, 3, -1, -1, -1, None, b"records")),
        response(partition_data(1, 3, -1, -1, -1, None, b"r" * 20_000)),
        response(partition_data(1, 3, -1, -1, -1, None, None)),
        response(partition_data(1, 0, 10, 9, 8, None, several)),
        response(partition_data(1, 0, 10, 9, 8, None, several), one_slice()),
        response(PartitionData(partition_index=1, records=[slice_of(0, 100)])),
        with_leader,
        with_tags,
        tagged_topic,
        tagged,
        with_endpoints,
    ]


def plain_responses() -> list[FetchResponse]:
    return [
        response(one_slice()),
        response(partition_data(1, 0, 10, 9, 8, [], [slice_of(0, 200)])),
        response(partition_data(1, 3, -1, -1, -1, None, [])),
        response(partition_data(1, 3, -1, -1, -1, [], [b"a buffer"])),
    ]


@every_version
def test_the_parts_of_a_response_are_its_bytes(version: int) -> None:
    for each in [*plain_responses(), *unusual_responses()]:
        try:
            expected = b"head" + compiled_bytes(each, version)
        except EncodeError:
            with pytest.raises(EncodeError):
                encode_parts(each, version)
            continue
        assert joined(encode_parts(each, version, bytearray(b"head"))) == expected
        assert joined(codec.encode_parts(each, version, bytearray(b"head"))) == expected
        assert joined(encode_parts(each, version)) == expected[4:]


@every_version
def test_the_parts_of_random_responses_are_their_bytes(version: int) -> None:
    @QUICK
    @given(messages(FetchResponse, version))
    def compare(response: FetchResponse) -> None:
        assert joined(encode_parts(response, version)) == compiled_bytes(response, version)

    compare()


@pytest.mark.parametrize("version", range(13, 19))
def test_a_response_of_one_slice_takes_the_fast_path(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [compiled_bytes(each, version) for each in plain_responses()]
    monkeypatch.setattr(codec, "encode_parts", never)
    assert [joined(encode_parts(each, version)) for each in plain_responses()] == expected


def test_file_slices_and_large_buffers_pass_through_untouched() -> None:
    first, second, large = slice_of(0, 10), slice_of(100, 100), b"x" * PART_BYTES
    head = bytearray(9)
    parts = encode_parts(response(partition_data(1, 0, 10, 9, 8, None, [first, large, b"small", second])), 16, head)
    assert parts[0] is head
    assert parts[1] is first
    assert parts[2] is large
    assert parts[3] == b"small"
    assert parts[4] is second
    alone = one_slice()
    assert isinstance(alone.records, list)
    assert encode_parts(response(alone), 16)[1] is alone.records[0]


@pytest.mark.parametrize("size", [1, 126, 127, 16_382, 16_383, 2_097_150, 2_097_151, 2**31 - 2])
def test_the_length_of_a_slice_takes_up_to_five_bytes(size: int) -> None:
    assert encode_parts(response(one_slice(size)), 16)[0] == codec.encode_parts(response(one_slice(size)), 16)[0]


def test_a_number_that_does_not_fit_is_refused() -> None:
    with pytest.raises(EncodeError, match=r"^FetchResponse version 16: 'i' format requires"):
        encode_parts(response(partition_data(2**31, 0, 10, 9, 8, None, [slice_of(0, 9)])), 16)


def test_partition_data_equals_what_the_constructor_makes() -> None:
    assert partition_data(1, 2, 3, 4, 5, None, b"r") == PartitionData(
        partition_index=1,
        error_code=2,
        high_watermark=3,
        last_stable_offset=4,
        log_start_offset=5,
        aborted_transactions=None,
        records=b"r",
    )


def test_responses_made_quickly_equal_what_the_constructors_make() -> None:
    assert fetch_response(5) == FetchResponse(session_id=5)
    assert topic_response("topic", TOPIC_ID) == FetchableTopicResponse(topic="topic", topic_id=TOPIC_ID)
