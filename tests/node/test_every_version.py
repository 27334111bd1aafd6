"""Every advertised version of every API is answered, on both listeners of a real node: with empty requests, and with
every field filled. kio, whose decoders come from Kafka's own schemas, can read the answers.
"""

import itertools
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import pytest
from kio.schema.index import schema_name_map
from kio.serial import entity_reader
from kio.serial.errors import OutOfBoundValue

from quire.node.api import SERVED
from quire.node.context import ANONYMOUS, Context
from quire.node.dispatch import Route
from quire.node.envelope import wrap
from quire.protocol import apis
from quire.protocol.codec import decode, encode
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from quire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.describe_quorum import DescribeQuorumRequest
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from quire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from quire.protocol.records import Record, build_batch
from quire.protocol.schema import Message
from quire.testing import Cluster, WireConnection
from tests.free_ports import free_port
from tests.node.every_request import Values, filled
from tests.wire.clients import eventually
from tests.wire.raw import produce
from tests.wire.raw_groups import has_coordinator

TOPIC = "orders"
GROUP = "readers"
BROKER, CONTROLLER = "broker", "controller"
EVERY_VERSION = [
    (listener, name, version)
    for name, served in SERVED.items()
    for listener, is_there in ((BROKER, served.on_broker), (CONTROLLER, served.on_controller))
    for version in range(served.oldest_on(controller=listener == CONTROLLER), served.newest + 1)
    if is_there
]
_KIO_CLASSES = {
    (name.rpartition(":")[2], version): name
    for versions in schema_name_map.values()
    for version, classes in versions.items()
    for name in classes.values()
}
_unused = (f"unused-{number}" for number in itertools.count())


class Running(NamedTuple):
    addresses: dict[str, str]
    topic_id: bytes


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """A node with a topic that has a record, a group with a member, and a coordinator for everything."""
    port = free_port()
    config: dict[str, str | int | bool] = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}",
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.num.partitions": 1,
    }
    with Cluster(config=config) as cluster:
        addresses = {BROKER: cluster.bootstrap_servers, CONTROLLER: f"127.0.0.1:{port}"}
        with WireConnection(addresses[BROKER]) as connection:
            create_topic(connection, TOPIC)
            wanted = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
            (topic,) = connection.call(wanted, 12, MetadataResponse).topics
            eventually(lambda: produce(connection, TOPIC, a_batch()).error_code == ErrorCode.NONE)
            eventually(lambda: has_coordinator(connection, GROUP))
            find = FindCoordinatorRequest(key_type=1, coordinator_keys=["payments"])
            eventually(lambda: connection.call(find, 4, FindCoordinatorResponse).coordinators[0].error_code == 0)
            joins = ConsumerGroupHeartbeatRequest(
                group_id=GROUP,
                member_id="alice",
                member_epoch=0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=[TOPIC],
                topic_partitions=[],
            )
            assert connection.call(joins, 1, ConsumerGroupHeartbeatResponse).error_code == ErrorCode.NONE
        yield Running(addresses, topic.topic_id)


def create_topic(connection: WireConnection, name: str) -> None:
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=2, replication_factor=1)], timeout_ms=5_000
    )
    (created,) = connection.call(request, 7, CreateTopicsResponse).topics
    assert created.error_code == ErrorCode.NONE, created.error_message


def a_batch() -> bytes:
    return bytes(build_batch([Record(0, 0, b"key", b"value")]))


def an_envelope() -> dict[str, Any]:
    sender = Context("PLAINTEXT", ANONYMOUS, "app", "127.0.0.1:1", api_version=2)
    envelope = wrap(sender, DescribeQuorumRequest())
    return {field.name: getattr(envelope, field.name) for field in envelope.FIELDS}


def values(running: Running, name: str, unused: str) -> Values:
    """Field values with which a request refers to existing things, and changes nothing that other tests need."""
    of_api: dict[str, dict[str, Any]] = {
        "AlterConfigs": {"name": "retention.ms", "value": "1000000", "resource_type": 2, "resource_name": TOPIC},
        "ApiVersions": {"client_software_name": "wire", "client_software_version": "1.0"},
        "ConsumerGroupHeartbeat": {
            "member_id": unused,
            "member_epoch": 0,
            "rack_id": "rack",
            "subscribed_topic_names": [TOPIC],
            "subscribed_topic_regex": "order.*",
            "server_assignor": "range",
            "topic_partitions": [],
        },
        "CreatePartitions": {"name": unused, "count": 3, "assignments": None},
        "CreateTopics": {
            "CreatableTopic.name": unused,
            "assignments": [],
            "CreatableTopicConfig.name": "retention.ms",
            "value": "1000",
        },
        "DeleteGroups": {"groups_names": [unused]},
        "DeleteTopics": {"name": unused, "topic_names": [unused], "topic_id": bytes(16)},
        "DescribeCluster": {"endpoint_type": 1},
        "DescribeConfigs": {"resource_type": 2, "resource_name": TOPIC, "configuration_keys": None},
        "DescribeGroups": {"groups": [GROUP, unused]},
        "DescribeQuorum": {"topic_name": "__cluster_metadata", "partition_index": 0},
        "DescribeTopicPartitions": {"name": TOPIC, "cursor": None},
        "DescribeTransactions": {"transactional_ids": ["payments", unused]},
        "Envelope": an_envelope(),
        "FindCoordinator": {"key_type": 0, "key": GROUP, "coordinator_keys": [GROUP]},
        "IncrementalAlterConfigs": {
            "name": "retention.ms",
            "value": "1000000",
            "resource_type": 2,
            "resource_name": TOPIC,
            "config_operation": 0,
        },
        "InitProducerId": {"producer_id": -1, "producer_epoch": -1},
        "JoinGroup": {"group_id": unused, "member_id": "", "group_instance_id": None},
        "ListConfigResources": {"resource_types": [2]},
        "ListGroups": {"states_filter": [], "types_filter": []},
        "ListTransactions": {"state_filters": [], "producer_id_filters": [], "transactional_id_pattern": None},
        "Produce": {"records": a_batch(), "transactional_id": None, "acks": -1},
        "UnregisterBroker": {"broker_id": 77},
        "ControllerRegistration": {"controller_id": 77},
        "UpdateFeatures": {"feature": "transaction.version", "max_version_level": 2, "validate_only": True},
    }
    everywhere = {
        "broker_id": 1,
        "group_id": GROUP,
        "group_instance_id": None,
        "group_ids": [GROUP, unused],
        "index": 0,
        "instance_id": None,
        "isolation_level": 1,
        "max_bytes": 1_000_000,
        "max_wait_ms": 10,
        "name": TOPIC,
        "member_epoch": -1,
        "member_id": None if name == "OffsetFetch" else "alice",
        "partition": 0,
        "partition_index": 0,
        "partition_max_bytes": 1_000_000,
        "protocol_type": "consumer",
        "rack_id": "",
        "rebalance_timeout_ms": 10_000,
        "replica_id": -1,
        "replication_factor": 1,
        "session_epoch": -1,
        "session_id": 0,
        "session_timeout_ms": 10_000,
        "timeout_ms": 5_000,
        "topic": TOPIC,
        "topic_id": running.topic_id,
        "transactional_id": "payments",
        "v3_and_below_transactional_id": "payments",
    }
    return everywhere | of_api.get(name, {})


def ask(running: Running, listener: str, request: Message, version: int) -> Message:
    """The answer; checks that it is valid to the last byte, and that the connection stays open."""
    response_class = apis.response_class(request.API_KEY)
    with WireConnection(running.addresses[listener]) as connection:
        body = connection.receive_body(request.API_KEY, version, connection.send(request, version))
        assert connection.call(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == ErrorCode.NONE
    found = _KIO_CLASSES.get((response_class.__name__, version))
    if found is not None:
        module, _, name = found.partition(":")
        try:
            _, size = entity_reader(getattr(import_module(module), name))(body, 0)
            assert size == len(body)
        except OutOfBoundValue as error:
            # Kafka treats it as a transaction that has not begun.
            assert str(error) == "Cannot parse negative timestamp", error
    return decode(response_class, body, version)


def test_exactly_these_versions_are_advertised(running: Running) -> None:
    for listener in (BROKER, CONTROLLER):
        with WireConnection(running.addresses[listener]) as connection:
            answer = connection.call(ApiVersionsRequest(), 0, ApiVersionsResponse)
        advertised = {
            (apis.API_NAMES[each.api_key], version)
            for each in answer.api_keys
            for version in range(each.min_version, each.max_version + 1)
        }
        # Produce 0 to 2 are advertised only for librdkafka, and refused.
        refused = {("Produce", version) for version in range(3)} if listener == BROKER else set()
        assert advertised - refused == {(name, version) for where, name, version in EVERY_VERSION if where == listener}


@pytest.mark.parametrize(("listener", "name", "version"), EVERY_VERSION)
def test_a_request_for_nothing_in_particular_is_answered(
    running: Running, listener: str, name: str, version: int
) -> None:
    request = apis.request_class(apis.api_key(name))()
    if name == "Produce":
        request.acks = 1  # type: ignore[attr-defined]
    ask(running, listener, request, version)


@pytest.mark.parametrize(("listener", "name", "version"), EVERY_VERSION)
def test_a_request_with_every_field_filled_is_answered(
    running: Running, listener: str, name: str, version: int
) -> None:
    unused = next(_unused)
    if name in ("CreatePartitions", "DeleteTopics"):
        with WireConnection(running.addresses[BROKER]) as connection:
            create_topic(connection, unused)
    request = filled(apis.request_class(apis.api_key(name)), version, values(running, name, unused))
    answer = ask(running, listener, request, version)
    code = getattr(answer, "error_code", ErrorCode.NONE)
    assert code not in (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_REQUEST, ErrorCode.UNSUPPORTED_VERSION)


@pytest.mark.parametrize(("listener", "name", "version"), EVERY_VERSION)
def test_a_refusal_can_be_written_in_every_version(listener: str, name: str, version: int) -> None:
    key = apis.api_key(name)
    route = Route(key, version, controller=False)
    requests = [filled(apis.request_class(key), version, values(Running({}, bytes(16)), name, "unused"))]
    # With acks=0 a refusal closes the connection, and a FindCoordinator without keys has no place for one.
    if name not in ("Produce", "FindCoordinator"):
        requests.append(apis.request_class(key)())
    for request in requests:
        received, _ = route.decode(memoryview(bytearray(encode(request, version))), 0)
        refusal = route.refuse(received, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the node failed on this request"))
        assert route.answer(refusal, 7)
