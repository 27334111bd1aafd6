"""From bytes to handlers and back: versions, headers, early requests, failures on request."""

from collections.abc import Callable

import pytest

from quire.network.handler import CloseConnection
from quire.node.api import SERVED
from quire.node.dispatch import HEADER, changes_something
from quire.node.faults import Faults
from quire.pending import Pending
from quire.protocol import apis, codec
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from quire.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from quire.protocol.records import Record, build_batch
from tests.node.conftest import SimulatedNode

API_VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")


def produce_request(topic: str, acks: int = -1, records: bytes | None = None) -> ProduceRequest:
    batch = bytes(build_batch([Record(0, -1, None, b"v")])) if records is None else records
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[data])


def test_every_served_version_has_a_handler_with_both_functions(node: SimulatedNode) -> None:
    for name, served in SERVED.items():
        for version in range(served.oldest, served.newest + 1):
            routes = node.dispatch._broker_routes if served.on_broker else node.dispatch._controller_routes
            route = routes.find(apis.api_key(name), version)
            assert route is not None, (name, version)
            assert callable(route.handle)
            assert callable(route.refuse)


ONLY_ASKS = ("Describe", "List", "Find", "Fetch", "Metadata", "ApiVersions", "OffsetFetch", "OffsetForLeaderEpoch")
FOR_ITS_CLIENT_ALONE = ("JoinGroup", "Heartbeat")


@pytest.mark.parametrize("name", SERVED)
def test_requests_that_change_something_are_worth_handling_without_their_client(name: str) -> None:
    frame = memoryview(HEADER.pack(apis.api_key(name), SERVED[name].newest, 1, -1))
    asks = name.startswith(ONLY_ASKS) or name.endswith("Describe") or name in FOR_ITS_CLIENT_ALONE
    assert changes_something(frame) is not asks


@pytest.mark.parametrize("frame", [b"\xff\xff......", b"\x7f\xff......"])
def test_a_request_of_no_api_is_not_worth_handling_without_its_client(frame: bytes) -> None:
    assert not changes_something(memoryview(frame))


def test_a_newer_client_gets_the_served_versions_in_version_0(node: SimulatedNode) -> None:
    frame = HEADER.pack(18, 99, 77, -1)
    reply = node.dispatch(node.info, memoryview(bytearray(frame)))
    assert isinstance(reply, list)
    whole = b"".join(bytes(part) for part in reply if not hasattr(part, "file"))
    assert int.from_bytes(whole[4:8]) == 77
    assert int.from_bytes(whole[8:10]) == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(("key", "version"), [(3, 99), (76, 1), (999, 0), (-1, 0), (0, 2)])
def test_any_other_unknown_request_closes_the_connection(node: SimulatedNode, key: int, version: int) -> None:
    with pytest.raises(CloseConnection, match="not supported"):
        node.dispatch(node.info, memoryview(bytearray(HEADER.pack(key, version, 1, -1))))


@pytest.mark.parametrize("size", range(10))
def test_a_request_without_a_whole_header_closes_the_connection(node: SimulatedNode, size: int) -> None:
    with pytest.raises(CloseConnection, match=f"^a request of {size} bytes has no header$"):
        node.dispatch(node.info, memoryview(bytearray(size)))


def test_bytes_that_are_no_request_close_the_connection(node: SimulatedNode) -> None:
    with pytest.raises(CloseConnection, match="cannot be read"):
        node.dispatch(node.info, memoryview(bytearray(HEADER.pack(3, 9, 1, -1) + b"\0\xff\xff\xff")))


def test_a_header_may_have_a_few_tags_that_mean_nothing_to_us_but_not_many(node: SimulatedNode) -> None:
    body = codec.encode(MetadataRequest(topics=[]), 12)

    def send(tags: bytes) -> object:
        return node.dispatch(node.info, memoryview(bytearray(HEADER.pack(3, 12, 1, -1) + tags + body)))

    assert isinstance(send(b"\x02\x05\x01x\x06\x00"), list)
    assert isinstance(send(b"\x20" + b"\x05\x00" * 32), list)
    with pytest.raises(CloseConnection, match="33 tagged fields, more than 32"):
        send(b"\x21" + b"\x05\x00" * 33)
    for broken in (b"\xff\xff\xff\xff\xff", b"\x01\x05\xff\xff\xff\xff\x0f", b"\x01\xff"):
        with pytest.raises(CloseConnection, match="cannot be read"):
            node.dispatch(node.info, memoryview(bytearray(HEADER.pack(3, 12, 1, -1) + broken)))


def test_a_request_that_comes_early_waits_until_the_node_is_ready(
    make_node: Callable[..., SimulatedNode],
) -> None:
    early = make_node()
    answer = early.send(API_VERSIONS, 3)
    assert not answer.done
    early.start()
    assert answer.done and answer.value is not None


def test_a_failure_that_was_asked_for_is_answered_once_and_nothing_is_done(node: SimulatedNode) -> None:
    node.create_topic("t")
    node.node.faults = Faults()
    node.node.faults.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER")
    failed = node.call(produce_request("t"), 9, ProduceResponse).responses[0].partition_responses[0]
    assert failed.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    done = node.call(produce_request("t"), 9, ProduceResponse).responses[0].partition_responses[0]
    assert (done.error_code, done.base_offset) == (0, 0)


def test_a_delay_that_was_asked_for_takes_that_long(node: SimulatedNode) -> None:
    node.node.faults = Faults()
    node.node.faults.delay("ApiVersions", 250)
    started = node.clock.monotonic_ms()
    node.call(API_VERSIONS, 3, ApiVersionsResponse)
    assert node.clock.monotonic_ms() - started == pytest.approx(250)


def test_an_unexpected_exception_is_an_answer_and_not_the_end(
    node: SimulatedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.create_topic("t")

    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(node.node.authorizer.__class__, "allows", broken)
    response = node.call(MetadataRequest(topics=None), 13, MetadataResponse)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_late_response_that_cannot_be_encoded_closes_its_connection_and_affects_no_other(node: SimulatedNode) -> None:
    huge = CreatableTopicConfig(name="x" * 20_000, value="y" * 20_000)
    good = CreatableTopic(name="good", num_partitions=1, replication_factor=1)
    bad = CreatableTopic(name="bad", num_partitions=1, replication_factor=1, configs=[huge])
    frame = HEADER.pack(19, 4, 77, -1) + codec.encode(CreateTopicsRequest(topics=[good, bad]), 4)
    reply = node.dispatch(node.info, memoryview(bytearray(frame)))
    assert isinstance(reply, Pending)
    node.create_topic("other")
    assert reply.done
