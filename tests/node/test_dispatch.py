"""From bytes to handlers and back: versions, headers, early requests, failures on request."""

from collections.abc import Callable

import pytest

from quire.network.handler import CloseConnection
from quire.node.api import SERVED
from quire.node.config_resources import ConfigResource
from quire.node.dispatch import HEADER, changes_something
from quire.node.faults import Faults
from quire.pending import Pending
from quire.protocol import apis, codec
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from quire.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from quire.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from quire.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from quire.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from quire.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from quire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
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
            routes = node.dispatch._broker_routes
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


def test_a_newer_client_is_told_our_versions_in_version_0(node: SimulatedNode) -> None:
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
    with pytest.raises(CloseConnection):
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


def test_a_controller_listener_offers_only_what_controllers_answer(node: SimulatedNode) -> None:
    offered = node.call(API_VERSIONS, 3, ApiVersionsResponse)
    node.info.listener = "CONTROLLER"
    node.info.state = None
    from_controller = node.call(API_VERSIONS, 3, ApiVersionsResponse)
    keys = {api.api_key for api in from_controller.api_keys}
    assert 0 not in keys
    assert 19 in keys
    assert keys < {api.api_key for api in offered.api_keys}


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


def test_acks_0_is_never_answered_and_its_error_closes_the_connection(node: SimulatedNode) -> None:
    node.create_topic("t")
    assert node.send(produce_request("t", acks=0), 9).value is None
    assert node.node.partitions.leader("t", None, 0).high_watermark == 1
    with pytest.raises(CloseConnection, match="UNKNOWN_TOPIC_OR_PARTITION"):
        node.send(produce_request("nowhere", acks=0), 9)


def test_a_topic_is_created_by_asking_for_it_where_that_is_allowed(
    make_node: Callable[..., SimulatedNode],
) -> None:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="fresh")], allow_auto_topic_creation=True)
    allowed = make_node().start()
    assert allowed.call(asked, 12, MetadataResponse).topics[0].partitions[0].leader_id == 1
    strict = make_node(settings={"auto.create.topics.enable": "false"}).start()
    refused = strict.call(asked, 12, MetadataResponse).topics[0]
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_named_twice_is_refused_and_nothing_is_appended(node: SimulatedNode) -> None:
    node.create_topic("t")
    request = produce_request("t")
    request.topic_data[0].partition_data *= 2
    answers = node.call(request, 9, ProduceResponse).responses[0].partition_responses
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST] * 2
    assert node.node.partitions.leader("t", None, 0).high_watermark == 0


def test_clients_do_not_write_the_clusters_own_topics(node: SimulatedNode) -> None:
    node.create_topic("__consumer_offsets")
    (answer,) = node.call(produce_request("__consumer_offsets"), 9, ProduceResponse).responses[0].partition_responses
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_late_answer_that_cannot_be_written_closes_its_connection_and_hurts_nobody_else(node: SimulatedNode) -> None:
    huge = CreatableTopicConfig(name="x" * 20_000, value="y" * 20_000)
    good = CreatableTopic(name="good", num_partitions=1, replication_factor=1)
    bad = CreatableTopic(name="bad", num_partitions=1, replication_factor=1, configs=[huge])
    frame = HEADER.pack(19, 4, 77, -1) + codec.encode(CreateTopicsRequest(topics=[good, bad]), 4)
    reply = node.dispatch(node.info, memoryview(bytearray(frame)))
    assert isinstance(reply, Pending)
    node.create_topic("other")
    assert reply.done


@pytest.mark.parametrize(("version", "expected"), [(3, False), (4, True)])
def test_old_java_clients_are_spared_features_that_start_at_level_0(
    node: SimulatedNode, version: int, expected: bool
) -> None:
    response = node.call(API_VERSIONS, version, ApiVersionsResponse)
    assert any(feature.min_version == 0 for feature in response.supported_features) is expected


@pytest.mark.parametrize(("timestamp", "version", "code"), [(-3, 6, 35), (-3, 7, 0), (-7, 11, 35), (-2, 1, 0)])
def test_a_landmark_is_told_from_the_version_on_that_knows_it(
    node: SimulatedNode, timestamp: int, version: int, code: int
) -> None:
    node.create_topic("t")
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[wanted])])
    (topic,) = node.call(request, version, ListOffsetsResponse).topics
    assert topic.partitions[0].error_code == code


def test_a_topic_named_twice_is_described_once(node: SimulatedNode) -> None:
    node.create_topic("t")
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")] * 3)
    assert [topic.name for topic in node.call(request, 12, MetadataResponse).topics] == ["t"]


def test_settings_asked_for_twice_are_told_once(node: SimulatedNode) -> None:
    broker = DescribeConfigsResource(resource_type=ConfigResource.BROKER, resource_name=str(node.node.node_id))
    unknown = DescribeConfigsResource(resource_type=ConfigResource.TOPIC, resource_name="unknown")
    results = node.call(DescribeConfigsRequest(resources=[broker, unknown] * 3), 4, DescribeConfigsResponse).results
    assert [result.resource_type for result in results] == [ConfigResource.BROKER, ConfigResource.TOPIC]


def test_a_partition_fetched_twice_in_one_request_is_read_once(node: SimulatedNode) -> None:
    node.create_topic("t")
    node.call(produce_request("t"), 9, ProduceResponse)
    wanted = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)] * 3
    request = FetchRequest(session_epoch=-1, max_bytes=1000, topics=[FetchTopic(topic="t", partitions=wanted)] * 2)
    (topic,) = node.call(request, 12, FetchResponse).responses
    assert len(topic.partitions) == 1


def test_a_partition_is_found_in_its_directory_however_often_it_is_named(node: SimulatedNode) -> None:
    node.create_topic("t", partitions=3)
    wanted = [
        DescribableLogDirTopic(topic="t", partitions=[2, 2, 7]),
        DescribableLogDirTopic(topic="t", partitions=[0]),
    ]
    (directory,) = node.call(DescribeLogDirsRequest(topics=wanted), 4, DescribeLogDirsResponse).results
    assert [partition.partition_index for partition in directory.topics[0].partitions] == [0, 2]


@pytest.mark.parametrize("version", range(7))
def test_a_group_that_cannot_be_described_is_refused_in_every_version(node: SimulatedNode, version: int) -> None:
    answer = node.call(DescribeGroupsRequest(groups=["nowhere"]), version, DescribeGroupsResponse)
    assert answer.groups[0].error_code == ErrorCode.NOT_COORDINATOR
    assert (answer.groups[0].error_message is not None) == (version >= 6)
