"""Admin requests without a client: requests that clients refuse to send, and results that they hide."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from quire.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from quire.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from quire.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from quire.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from quire.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from quire.testing import WireConnection
from tests.wire.clients import OTHER_BROKER, at_once
from tests.wire.conftest import MakeTopic
from tests.wire.raw import topic_metadata

TOPIC, BROKER = 2, 4
KNOWS_TYPES_FROM = 3


def create(
    connection: WireConnection, *topics: CreatableTopic, version: int = 7, validate_only: bool = False
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=5000, validate_only=validate_only)
    return connection.call(request, version, CreateTopicsResponse).topics


def one(name: str, partitions: int = 1, factor: int = 1, **configs: str | None) -> CreatableTopic:
    settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, configs=settings)


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates(connection: WireConnection, make_topic: MakeTopic, version: int) -> None:
    name = f"{make_topic()}-v{version}"
    (made,) = create(connection, one(name), version=version)
    assert (made.name, made.error_code) == (name, ErrorCode.NONE)
    at_once(lambda: topic_metadata(connection, name).error_code == ErrorCode.NONE)


def test_an_answer_describes_what_was_made(connection: WireConnection, make_topic: MakeTopic) -> None:
    (made,) = create(connection, one(make_topic() + "-described", 3, retention_ms="1234"))
    assert (made.num_partitions, made.replication_factor, made.topic_config_error_code) == (3, 1, 0)
    at_once(lambda: made.topic_id == topic_metadata(connection, made.name).topic_id)
    assert made.configs is not None
    configs = {config.name: config.value for config in made.configs}
    assert configs["retention.ms"] == "1234"
    assert configs["cleanup.policy"] == "delete"


def test_broker_defaults_are_used_where_minus_one_is_asked_for(
    connection: WireConnection, make_topic: MakeTopic
) -> None:
    (made,) = create(connection, one(make_topic() + "-default", -1, -1))
    assert (made.error_code, made.num_partitions, made.replication_factor) == (ErrorCode.NONE, 1, 1)


def test_topics_of_one_request_succeed_and_fail_apart(connection: WireConnection, make_topic: MakeTopic) -> None:
    existing = make_topic()
    answer = create(connection, one(existing), one(f"{existing}-new"), one(f"{existing} bad"), one(""))
    codes = {made.name: made.error_code for made in answer}
    assert codes == {
        existing: ErrorCode.TOPIC_ALREADY_EXISTS,
        f"{existing}-new": ErrorCode.NONE,
        f"{existing} bad": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert all(made.error_message for made in answer if made.error_code)


def test_a_name_given_twice_is_refused(connection: WireConnection, make_topic: MakeTopic) -> None:
    name = make_topic() + "-twice"
    answer = create(connection, one(name), one(name))
    assert {made.error_code for made in answer} == {ErrorCode.INVALID_REQUEST}
    assert topic_metadata(connection, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("partitions", "factor", "code"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-2, 1, ErrorCode.INVALID_PARTITIONS),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, -2, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 2, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_impossible_counts(
    connection: WireConnection, make_topic: MakeTopic, partitions: int, factor: int, code: ErrorCode
) -> None:
    (made,) = create(connection, one(make_topic() + "-impossible", partitions, factor))
    assert made.error_code == code


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ([(0, [])], "the assignment of a partition has no replicas"),
        ([(0, [99])], "the assignment names broker 99, which is not registered"),
        ([(1, [1])], "the assigned partitions must be numbered from 0 on without gaps"),
        ([(0, [1]), (0, [1])], "partition 0 is assigned twice"),
        ([(0, [1, 1])], "the assignment names broker 1 more than once"),
        ([(0, [1]), (2, [1])], "the assigned partitions must be numbered from 0 on without gaps"),
        ([(0, [-1])], "the assignment names broker -1, which is not registered"),
    ],
    ids=str,
)
def test_impossible_assignments(
    connection: WireConnection, make_topic: MakeTopic, assignments: list[tuple[int, list[int]]], message: str
) -> None:
    topic = one(make_topic() + "-assigned", -1, -1)
    topic.assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=brokers) for index, brokers in assignments
    ]
    (made,) = create(connection, topic)
    if OTHER_BROKER is None:
        assert (made.error_code, made.error_message) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    else:
        assert made.error_code in (ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.INVALID_REQUEST)


def test_counts_beside_an_assignment_are_refused(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = one(make_topic() + "-both", 1, 1)
    topic.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=[1])]
    (made,) = create(connection, topic)
    assert made.error_code == ErrorCode.INVALID_REQUEST


def test_a_null_setting_is_refused(connection: WireConnection, make_topic: MakeTopic) -> None:
    (made,) = create(connection, one(make_topic() + "-null", retention_ms=None))
    assert made.error_code == ErrorCode.INVALID_CONFIG


def test_deleting_by_name_in_an_old_version(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    request = DeleteTopicsRequest(topic_names=[topic, f"{topic}-missing"], timeout_ms=5000)
    answer = connection.call(request, 1, DeleteTopicsResponse)
    codes = {found.name: found.error_code for found in answer.responses}
    assert codes == {topic: ErrorCode.NONE, f"{topic}-missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_growing_a_topic_with_assignments(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    node = topic_metadata(connection, topic).partitions[0].leader_id

    def grow(count: int, *assignments: list[int], validate_only: bool = False) -> int:
        wanted = CreatePartitionsTopic(
            name=topic,
            count=count,
            assignments=[CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments] or None,
        )
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=5000, validate_only=validate_only)
        return connection.call(request, 3, CreatePartitionsResponse).results[0].error_code

    assert grow(2, [node], [node]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(2, [99]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(3, [node], [node], validate_only=True) == ErrorCode.NONE
    assert grow(3, [node], [node]) == ErrorCode.NONE
    assert grow(3) == ErrorCode.INVALID_PARTITIONS
    assert grow(0) == ErrorCode.INVALID_PARTITIONS


def test_growing_a_missing_topic(connection: WireConnection, make_topic: MakeTopic) -> None:
    wanted = CreatePartitionsTopic(name=make_topic() + "-missing", count=3, assignments=None)
    answer = connection.call(CreatePartitionsRequest(topics=[wanted], timeout_ms=5000), 3, CreatePartitionsResponse)
    assert answer.results[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_partitions_are_described_page_by_page(connection: WireConnection, make_topic: MakeTopic) -> None:
    first, second = sorted([make_topic(partitions=3), make_topic(partitions=3)])
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=second), TopicRequest(name=first)], response_partition_limit=2
    )
    seen: list[tuple[str | None, int]] = []
    for _ in range(10):
        answer = connection.call(request, 0, DescribeTopicPartitionsResponse)
        page = [(found.name, partition.partition_index) for found in answer.topics for partition in found.partitions]
        assert len(page) <= 2
        seen += page
        if answer.next_cursor is None:
            break
        request.cursor = DescribeTopicPartitionsRequestCursor(
            topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index
        )
    assert seen == [(name, index) for name in (first, second) for index in range(3)]


def test_describing_partitions_of_a_missing_topic(connection: WireConnection, make_topic: MakeTopic) -> None:
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=make_topic() + "-missing")])
    (found,) = connection.call(request, 0, DescribeTopicPartitionsResponse).topics
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found.partitions == []


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described_in_every_version(connection: WireConnection, version: int) -> None:
    answer = connection.call(DescribeClusterRequest(), version, DescribeClusterResponse)
    assert answer.error_code == ErrorCode.NONE
    assert answer.controller_id in [broker.broker_id for broker in answer.brokers]
    assert len(answer.cluster_id) == 22


@pytest.mark.parametrize("version", range(1, 5))
def test_settings_are_described_in_every_version(
    connection: WireConnection, make_topic: MakeTopic, version: int
) -> None:
    topic = make_topic(segment_bytes="5000000")
    asked = DescribeConfigsResource(
        resource_type=TOPIC, resource_name=topic, configuration_keys=["segment.bytes", "no.such"]
    )
    request = DescribeConfigsRequest(
        resources=[asked], include_synonyms=True, include_documentation=version >= KNOWS_TYPES_FROM
    )
    (found,) = connection.call(request, version, DescribeConfigsResponse).results
    (config,) = found.configs
    assert (config.name, config.value, config.read_only) == ("segment.bytes", "5000000", False)
    assert [(each.name, each.value, each.source) for each in config.synonyms] == [
        ("segment.bytes", "5000000", 1),
        ("log.segment.bytes", "1073741824", 5),
    ]
    assert config.config_type == (3 if version >= KNOWS_TYPES_FROM else 0)
    assert bool(config.documentation) == (version >= KNOWS_TYPES_FROM)


def test_settings_of_unknown_kinds_and_brokers(connection: WireConnection) -> None:
    def describe(kind: int, name: str) -> int:
        asked = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        request = DescribeConfigsRequest(resources=[asked])
        return connection.call(request, 4, DescribeConfigsResponse).results[0].error_code

    assert describe(BROKER, "99") == ErrorCode.INVALID_REQUEST
    assert describe(BROKER, "abc") == ErrorCode.INVALID_REQUEST
    assert describe(TOPIC, "bad name") == ErrorCode.INVALID_TOPIC_EXCEPTION
    if OTHER_BROKER is None:
        assert describe(77, "x") == ErrorCode.INVALID_REQUEST
    else:
        assert describe(77, "x") in (ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR)


@pytest.mark.parametrize("version", range(3))
def test_records_are_deleted_partition_by_partition(
    connection: WireConnection, make_topic: MakeTopic, version: int
) -> None:
    topic = make_topic(partitions=2)
    asked = [
        DeleteRecordsPartition(partition_index=0, offset=0),
        DeleteRecordsPartition(partition_index=1, offset=5),
        DeleteRecordsPartition(partition_index=7, offset=0),
    ]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=asked)], timeout_ms=5000)
    (found,) = connection.call(request, version, DeleteRecordsResponse).topics
    results = {each.partition_index: (each.error_code, each.low_watermark) for each in found.partitions}
    assert results == {
        0: (ErrorCode.NONE, 0),
        1: (ErrorCode.OFFSET_OUT_OF_RANGE, -1),
        7: (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    }


@pytest.mark.parametrize("version", range(6))
def test_every_version_gives_idempotent_producers_an_id(connection: WireConnection, version: int) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    answer = connection.call(request, version, InitProducerIdResponse)
    assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
    assert answer.producer_id >= 0


def test_unknown_features_and_levels_are_refused(connection: WireConnection) -> None:
    for feature, level in (("no.such.feature", 1), ("metadata.version", 999)):
        update = FeatureUpdateKey(feature=feature, max_version_level=level)
        answer = connection.call(UpdateFeaturesRequest(feature_updates=[update]), 1, UpdateFeaturesResponse)
        codes = {answer.error_code, *(result.error_code for result in answer.results)}
        assert codes & {ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.FEATURE_UPDATE_FAILED}
