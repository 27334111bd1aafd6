"""Frames, headers and versions, and errors in them."""

import struct

import pytest

from quire.protocol import apis
from quire.protocol.codec import decode, encode
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.testing import WireConnection
from quire.testing.wire_connection import request_frame
from tests.wire.clients import OTHER_BROKER
from tests.wire.conftest import MakeTopic

METADATA_KEY = MetadataRequest.API_KEY
NOTHING = MetadataRequest(topics=[])
READ_ONLY = [
    "ApiVersions",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeLogDirs",
    "DescribeProducers",
    "DescribeQuorum",
    "DescribeTopicPartitions",
    "Fetch",
    "FindCoordinator",
    "ListConfigResources",
    "ListOffsets",
    "Metadata",
    "OffsetForLeaderEpoch",
    "Produce",
]


def advertised(connection: WireConnection) -> dict[str, tuple[int, int]]:
    answer = connection.call(ApiVersionsRequest(), 0, ApiVersionsResponse)
    return {apis.API_NAMES[api.api_key]: (api.min_version, api.max_version) for api in answer.api_keys}


def header(api_key: int, version: int, correlation_id: int = 1) -> bytes:
    return struct.pack(">hhih", api_key, version, correlation_id, -1)


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def test_an_unsupported_version_of_api_versions_is_answered_in_version_0(connection: WireConnection) -> None:
    connection.send_bytes(frame(header(ApiVersionsRequest.API_KEY, 99) + b"\0"))
    answer = decode(ApiVersionsResponse, connection.receive_frame()[4:], 0)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert ranges[ApiVersionsRequest.API_KEY] == (0, 4)
    assert connection.call(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_api_versions_is_answered_with_a_version_0_header(
    connection: WireConnection, version: int
) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = connection.call(request, version, ApiVersionsResponse)
    assert answer.error_code == ErrorCode.NONE
    assert ApiVersionsRequest.API_KEY in [api.api_key for api in answer.api_keys]


def test_features_are_returned_from_version_3_on(connection: WireConnection) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = connection.call(request, 4, ApiVersionsResponse)
    assert "metadata.version" in [feature.name for feature in answer.supported_features]
    assert "metadata.version" in [feature.name for feature in answer.finalized_features]
    assert answer.finalized_features_epoch >= 0


def test_a_client_with_an_invalid_software_name_is_refused(connection: WireConnection) -> None:
    request = ApiVersionsRequest(client_software_name="no spaces please", client_software_version="1")
    assert connection.call(request, 3, ApiVersionsResponse).error_code == ErrorCode.INVALID_REQUEST


def test_produce_is_advertised_from_0_for_librdkafka_and_fetch_from_4(connection: WireConnection) -> None:
    ranges = advertised(connection)
    assert ranges["Produce"] == (0, 13)
    assert ranges["Fetch"][0] == 4
    assert ranges["Metadata"] == (0, 13)
    assert ranges["ListOffsets"][0] == 1


def test_nothing_is_advertised_that_kafka_does_not_have(connection: WireConnection) -> None:
    for api, (oldest, newest) in advertised(connection).items():
        known_oldest, known_newest = apis.VALID_VERSIONS[apis.api_key(api)]
        assert newest <= known_newest, api
        assert oldest >= (0 if api == "Produce" else known_oldest), api


@pytest.mark.skipif(OTHER_BROKER is not None, reason="Apache Kafka has them")
@pytest.mark.parametrize("api", ["ShareGroupHeartbeat", "Vote"])
def test_an_api_that_does_not_exist_yet_is_not_advertised_and_not_answered(
    connection: WireConnection, api: str
) -> None:
    assert api not in advertised(connection)
    key = apis.api_key(api)
    connection.send(apis.request_class(key)(), apis.VALID_VERSIONS[key][1])
    assert connection.is_closed_by_peer()


@pytest.mark.parametrize("api", READ_ONLY)
def test_every_advertised_version_answers_a_request_about_nothing(bootstrap: str, api: str) -> None:
    """Requests with empty lists and default fields: each version is decoded, handled and encoded."""
    with WireConnection(bootstrap) as connection:
        oldest, newest = advertised(connection)[api]
        key = apis.api_key(api)
        request = apis.request_class(key)()
        if api == "ApiVersions":
            request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        if api == "Produce":
            setattr(request, "acks", 1)  # noqa: B010
        for version in range(max(oldest, request.VERSIONS[0]), newest + 1):
            answer = connection.call(request, version, apis.response_class(key))
            assert answer is not None


@pytest.mark.parametrize(
    ("api_key", "version"),
    [(3, 99), (3, -1), (0, 99), (1, 3), (1, 99), (2, 0), (19, 1), (9999, 0), (-1, 0), (4, 0)],
)
def test_any_other_unsupported_version_or_api_closes_the_connection(bootstrap: str, api_key: int, version: int) -> None:
    with WireConnection(bootstrap) as connection:
        connection.send_bytes(frame(header(api_key, version) + bytes(40)))
        assert connection.is_closed_by_peer()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_produce_versions_that_are_only_advertised_close_the_connection(bootstrap: str, version: int) -> None:
    with WireConnection(bootstrap) as connection:
        connection.send_bytes(frame(header(0, version) + struct.pack(">hii", 1, 1000, 0)))
        assert connection.is_closed_by_peer()


@pytest.mark.parametrize("client_id", [None, "", "someone", "ü" * 100])
@pytest.mark.parametrize("version", [1, 12])
def test_client_ids_are_legacy_strings_in_every_version(bootstrap: str, client_id: str | None, version: int) -> None:
    with WireConnection(bootstrap, client_id=client_id) as connection:
        assert connection.call(NOTHING, version, MetadataResponse).topics == []


def test_unknown_tagged_fields_are_skipped(connection: WireConnection) -> None:
    tags = b"\x02" + b"\x4d\x03abc" + b"\xce\x8f\x01\x00"
    body = encode(NOTHING, 12)
    assert body.endswith(b"\0")
    connection.send_bytes(frame(header(METADATA_KEY, 12, 7) + tags + body[:-1] + tags))
    answer = decode(MetadataResponse, connection.receive_body(METADATA_KEY, 12, 7), 12)
    assert len(answer.brokers) == 1


def test_pipelined_requests_are_answered_in_order(connection: WireConnection) -> None:
    frames = [request_frame(NOTHING, version % 14, 100 + version) for version in range(100)]
    connection.send_bytes(b"".join(frames))
    for version in range(100):
        connection.receive(MetadataResponse, version % 14, 100 + version)


def test_a_request_may_come_byte_by_byte(connection: WireConnection) -> None:
    for byte in request_frame(NOTHING, 12, 5):
        connection.send_bytes(bytes([byte]))
    connection.receive(MetadataResponse, 12, 5)


def test_a_request_split_across_the_end_of_another_is_put_together(connection: WireConnection) -> None:
    first, second = request_frame(NOTHING, 12, 1), request_frame(NOTHING, 1, 2)
    connection.send_bytes(first + second[:3])
    connection.receive(MetadataResponse, 12, 1)
    connection.send_bytes(second[3:])
    connection.receive(MetadataResponse, 1, 2)


@pytest.mark.parametrize("length", [-1, -(1 << 31), (1 << 31) - 1, 200 * 1024 * 1024])
def test_an_impossible_length_closes_the_connection(bootstrap: str, length: int) -> None:
    with WireConnection(bootstrap) as connection:
        connection.send_bytes(struct.pack(">i", length) + b"abcdefgh")
        assert connection.is_closed_by_peer()


@pytest.mark.parametrize("payload", [b"", b"\0", b"\0\x03\0\x0c", header(3, 12)[:-1], header(3, 12) + b"\0\xff\xff"])
def test_a_frame_that_ends_too_early_closes_the_connection(bootstrap: str, payload: bytes) -> None:
    with WireConnection(bootstrap) as connection:
        connection.send_bytes(frame(payload))
        assert connection.is_closed_by_peer()


def test_all_topics_are_null_or_in_version_0_empty(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    in_version_0 = connection.call(MetadataRequest(topics=[]), 0, MetadataResponse)
    assert topic in [found.name for found in in_version_0.topics]
    for version in range(1, 14):
        everything = connection.call(MetadataRequest(topics=None), version, MetadataResponse)
        assert topic in [found.name for found in everything.topics]
        assert connection.call(NOTHING, version, MetadataResponse).topics == []
