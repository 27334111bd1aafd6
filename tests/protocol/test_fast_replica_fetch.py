"""Hand-tuned Fetch of followers: the same as the compiled codec, and used where it applies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.protocol import codec
from quire.protocol.errors import EncodeError
from quire.protocol.fast_replica_fetch import request_encoder, response_decoder
from quire.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
)
from tests.protocol.every_message import full_message, versions_of
from tests.protocol.strategies import VALUES, messages
from tests.protocol.tuned import (
    QUICK,
    TOPIC_ID,
    assert_decodes_alike,
    assert_encodes_alike,
    assert_in_use,
    assert_refuses_alike,
    compiled_bytes,
    never,
)

every_version = pytest.mark.parametrize("version", versions_of(FetchRequest))
tuned_requests = pytest.mark.parametrize("version", range(15, 19))
tuned_responses = pytest.mark.parametrize("version", range(13, 19))
number, offset = VALUES["int32"], VALUES["int64"]


@st.composite
def requests_of_one_partition(draw: st.DrawFn) -> FetchRequest:
    request = FetchRequest(max_wait_ms=draw(number), min_bytes=draw(number), max_bytes=draw(number))
    request.session_id, request.session_epoch = draw(number), draw(number)
    if draw(st.booleans()):
        request.replica_state = ReplicaState(replica_id=draw(number), replica_epoch=draw(offset))
    partition = FetchPartition(
        partition=draw(number),
        current_leader_epoch=draw(number),
        fetch_offset=draw(offset),
        last_fetched_epoch=draw(number),
        log_start_offset=draw(offset),
        partition_max_bytes=draw(number),
    )
    request.topics.append(FetchTopic(topic_id=draw(VALUES["uuid"]), partitions=[partition]))
    return request


@st.composite
def responses_of_one_partition(draw: st.DrawFn) -> FetchResponse:
    partition = PartitionData(
        partition_index=draw(number),
        error_code=draw(VALUES["int16"]),
        high_watermark=draw(offset),
        last_stable_offset=draw(offset),
        log_start_offset=draw(offset),
        aborted_transactions=draw(st.sampled_from([None, []])),
        preferred_read_replica=draw(number),
        records=draw(st.binary(max_size=20) | st.sampled_from([b"r" * size for size in (126, 127, 16_382, 16_383)])),
    )
    topic = FetchableTopicResponse(topic_id=draw(VALUES["uuid"]), partitions=[partition])
    return FetchResponse(
        throttle_time_ms=draw(number), error_code=draw(VALUES["int16"]), session_id=draw(number), responses=[topic]
    )


def one_partition(**more: object) -> FetchRequest:
    topic = FetchTopic(topic_id=TOPIC_ID, partitions=[FetchPartition(partition=1)])
    return FetchRequest(topics=[topic], replica_state=ReplicaState(replica_id=2, replica_epoch=3), **more)  # type: ignore[arg-type]


def unusual_requests() -> list[FetchRequest]:
    """One of each thing that the short way leaves to the compiled encoder."""
    tagged, tagged_topic, tagged_partition, tagged_replica, directory, high = (one_partition() for _ in range(6))
    tagged.unknown_tags = {77: b"tag"}
    tagged_topic.topics[0].unknown_tags = {77: b"tag"}
    tagged_partition.topics[0].partitions[0].unknown_tags = {77: b"tag"}
    tagged_replica.replica_state.unknown_tags = {77: b"tag"}
    directory.topics[0].partitions[0].replica_directory_id = TOPIC_ID
    high.topics[0].partitions[0].high_watermark = 5
    two = one_partition()
    two.topics[0].partitions.append(FetchPartition(partition=2))
    topics = one_partition()
    topics.topics.append(FetchTopic(topic_id=TOPIC_ID))
    return [
        FetchRequest(),
        two,
        topics,
        one_partition(rack_id="rack"),
        one_partition(cluster_id="cluster"),
        one_partition(forgotten_topics_data=[ForgottenTopic(topic_id=TOPIC_ID, partitions=[3])]),
        tagged,
        tagged_topic,
        tagged_partition,
        tagged_replica,
        directory,
        high,
    ]


@every_version
def test_requests_of_any_kind_are_written_as_by_the_compiled_encoder(version: int) -> None:
    @QUICK
    @given(messages(FetchRequest, version))
    def compare(request: FetchRequest) -> None:
        assert_encodes_alike(request_encoder, request, version)

    compare()


@tuned_requests
def test_unusual_requests_are_written_as_by_the_compiled_encoder(version: int) -> None:
    for request in unusual_requests():
        assert_encodes_alike(request_encoder, request, version)


@tuned_requests
def test_a_request_of_one_partition_takes_the_fast_path(version: int) -> None:
    assert_in_use(codec.encoder(FetchRequest, version), request_encoder)

    @QUICK
    @given(requests_of_one_partition())
    def encode(request: FetchRequest) -> None:
        out = bytearray(b"head")
        request_encoder(version, never)(request, out)
        assert out == b"head" + compiled_bytes(request, version)

    encode()


@tuned_requests
def test_a_request_that_cannot_be_expressed_is_refused(version: int) -> None:
    for request in (one_partition(max_wait_ms=2**31), one_partition(replica_id=4)):
        with pytest.raises(EncodeError):
            codec.encode(request, version)


@every_version
def test_responses_of_any_kind_are_read_as_by_the_compiled_decoder(version: int) -> None:
    @QUICK
    @given(messages(FetchResponse, version), st.binary(max_size=3))
    def compare(response: FetchResponse, behind: bytes) -> None:
        assert_decodes_alike(response_decoder, response, version, behind)

    compare()


@tuned_responses
def test_a_response_of_one_partition_takes_the_fast_path(version: int) -> None:
    assert_in_use(codec.decoder(FetchResponse, version), response_decoder)

    @QUICK
    @given(responses_of_one_partition())
    def decode(response: FetchResponse) -> None:
        assert_decodes_alike(response_decoder, response, version)
        data = compiled_bytes(response, version)
        assert response_decoder(version, never)(memoryview(data), 0) == (response, len(data))

    decode()


@tuned_responses
def test_unusual_responses_are_read_as_by_the_compiled_decoder(version: int) -> None:
    def response(**more: object) -> FetchResponse:
        partition = PartitionData(partition_index=1, high_watermark=2, **{"records": b"r", **more})  # type: ignore[arg-type]
        return FetchResponse(responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[partition])])

    endpoints = response()
    if version >= 16:
        endpoints.node_endpoints = [NodeEndpoint(node_id=4, host="h", port=1)]
    for each in (
        FetchResponse(session_id=9),
        response(records=None),
        response(aborted_transactions=[AbortedTransaction(producer_id=1, first_offset=2)]),
        response(diverging_epoch=EpochEndOffset(epoch=1, end_offset=2)),
        response(current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=2)),
        endpoints,
    ):
        assert_decodes_alike(response_decoder, each, version)


@tuned_responses
def test_malformed_responses_fare_as_with_the_compiled_decoder(version: int) -> None:
    topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[PartitionData(records=b"records")])
    assert_refuses_alike(response_decoder, FetchResponse(responses=[topic]), version)
    assert_refuses_alike(response_decoder, full_message(FetchResponse, version), version)
