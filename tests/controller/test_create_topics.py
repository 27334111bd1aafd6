"""CreateTopics, compared with Apache Kafka 4.3.1's answers to the same requests."""

from typing import Any

import pytest

from quire.controller.controller_result import ControllerResult, collected
from quire.controller.create_topics import create_topics
from quire.metadata.image import ClusterImage
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from quire.protocol.messages.metadata_records import ConfigRecord, PartitionRecord, TopicRecord
from simulator.random import SimRandom
from tests.controller.images import CONFIG, after, broker, cluster, directory, topic


def run(
    image: ClusterImage, *topics: CreatableTopic, validate_only: bool = False
) -> ControllerResult[CreateTopicsResponse]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    return collected(create_topics(image, CONFIG, SimRandom(1), request))


def wanted(name: str = "new", **fields: Any) -> CreatableTopic:
    given: dict[str, Any] = {"name": name, "num_partitions": 1, "replication_factor": 1}
    return CreatableTopic(**given | fields)


def by_hand(*replicas: list[int]) -> CreatableTopic:
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=each) for index, each in enumerate(replicas)
    ]
    return CreatableTopic(name="new", num_partitions=-1, replication_factor=-1, assignments=assignments)


def answer(image: ClusterImage, asked: CreatableTopic) -> CreatableTopicResult:
    result = run(image, asked)
    assert len(result.response.topics) == 1
    if result.response.topics[0].error_code:
        assert result.records == []
        assert result.response.topics[0].configs == []
    return result.response.topics[0]


def test_a_topic_its_settings_and_its_partitions_are_one_batch() -> None:
    config = CreatableTopicConfig(name="retention.ms", value="77")
    result = run(cluster(), wanted(num_partitions=2, configs=[config]))
    created = result.response.topics[0]
    assert (created.error_code, created.error_message) == (ErrorCode.NONE, None)
    assert (created.num_partitions, created.replication_factor) == (2, 1)
    assert [type(record) for record in result.records] == [TopicRecord, ConfigRecord, PartitionRecord, PartitionRecord]
    image = after(cluster(), result.records)
    made = image.topics_by_id[created.topic_id]
    assert image.topic_configs("new") == {"retention.ms": "77"}
    for partition in made.partitions.values():
        assert (partition.leader, partition.isr, partition.leader_epoch) == (1, (1,), 0)
        assert partition.directories == (directory(1),)


def test_the_settings_in_force_are_returned() -> None:
    config = CreatableTopicConfig(name="retention.ms", value="77")
    created = run(cluster(), wanted(configs=[config])).response.topics[0]
    told = {each.name: (each.value, each.config_source) for each in created.configs or []}
    assert told["retention.ms"] == ("77", 1)
    assert told["cleanup.policy"] == ("delete", 5)
    assert len(told) == 33


def test_counts_that_are_left_open_come_from_the_configuration() -> None:
    created = run(cluster(), wanted(num_partitions=-1, replication_factor=-1)).response.topics[0]
    assert (created.num_partitions, created.replication_factor) == (2, 1)


def test_validating_writes_nothing_and_answers_the_same() -> None:
    result = run(cluster(), wanted(num_partitions=3), validate_only=True)
    assert result.records == []
    assert (result.response.topics[0].error_code, result.response.topics[0].num_partitions) == (0, 3)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (".", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("ä", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a\n", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x" * 249, ErrorCode.NONE),
        ("...", ErrorCode.NONE),
        ("__cluster_metadata", ErrorCode.INVALID_REQUEST),
        ("orders", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("a_b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a.b", ErrorCode.TOPIC_ALREADY_EXISTS),
    ],
)
def test_names(name: str, code: ErrorCode) -> None:
    image = cluster(topic("orders"), topic("a.b", b"u" * 16))
    assert answer(image, wanted(name)).error_code == code


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"num_partitions": -2}, ErrorCode.INVALID_PARTITIONS),
        ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": -3}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"num_partitions": 10_001}, ErrorCode.POLICY_VIOLATION),
        ({"configs": [CreatableTopicConfig(name="nope", value="1")]}, ErrorCode.INVALID_CONFIG),
        ({"configs": [CreatableTopicConfig(name="retention.ms", value="x")]}, ErrorCode.INVALID_CONFIG),
        ({"configs": [CreatableTopicConfig(name="retention.ms", value=None)]}, ErrorCode.INVALID_CONFIG),
    ],
    ids=str,
)
def test_sizes_and_settings_that_cannot_be(fields: dict[str, Any], code: ErrorCode) -> None:
    refused = answer(cluster(), wanted(**fields))
    assert refused.error_code == code
    assert (refused.num_partitions, refused.replication_factor) == (-1, -1)


def test_a_topic_needs_a_broker_that_is_up() -> None:
    assert answer(cluster(brokers=0), wanted()).error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    fenced = cluster(broker(1, fenced=True), brokers=0)
    assert answer(fenced, wanted()).error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_replicas_can_be_assigned_by_hand() -> None:
    image = cluster(broker(3, fenced=True), brokers=2)
    result = run(image, by_hand([2, 1], [3, 2]))
    assert result.response.topics[0].replication_factor == 2
    partitions = after(image, result.records).topics_by_name["new"].partitions
    assert (partitions[0].replicas, partitions[0].isr, partitions[0].leader) == ((2, 1), (2, 1), 2)
    assert (partitions[1].replicas, partitions[1].isr, partitions[1].leader) == ((3, 2), (2,), 2)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (by_hand([9]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (by_hand([1, 1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (by_hand([]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (by_hand([1], [1, 2]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (by_hand([3]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=["unknown broker", "twice the same", "nobody", "uneven", "only a fenced one"],
)
def test_assignments_that_cannot_be(asked: CreatableTopic, code: ErrorCode) -> None:
    assert answer(cluster(broker(3, fenced=True), brokers=2), asked).error_code == code


def test_assigned_partitions_are_numbered_from_0_once_each() -> None:
    gap, twice = by_hand([1], [1]), by_hand([1], [1])
    gap.assignments[1].partition_index = 2
    twice.assignments[1].partition_index = 0
    assert answer(cluster(), gap).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert answer(cluster(), twice).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize("fields", [{"num_partitions": 1}, {"replication_factor": 1}], ids=str)
def test_an_assignment_leaves_no_room_for_other_sizes(fields: dict[str, int]) -> None:
    asked = by_hand([1])
    for name, value in fields.items():
        setattr(asked, name, value)
    assert answer(cluster(), asked).error_code == ErrorCode.INVALID_REQUEST


def test_a_topic_named_twice_is_refused_once_and_the_others_are_created() -> None:
    result = run(cluster(), wanted("twice"), wanted("once"), wanted("twice"))
    assert [(each.name, each.error_code) for each in result.response.topics] == [
        ("twice", ErrorCode.INVALID_REQUEST),
        ("once", ErrorCode.NONE),
    ]
    assert list(after(cluster(), result.records).topics_by_name) == ["once"]


def test_names_that_collide_within_a_request_are_not_both_created() -> None:
    result = run(cluster(), wanted("a.b"), wanted("a_b"))
    assert [each.error_code for each in result.response.topics] == [0, ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_every_partition_gets_the_replicas_that_were_asked_for() -> None:
    result = run(cluster(brokers=4), wanted(num_partitions=8, replication_factor=3))
    assert result.response.topics[0].replication_factor == 3
    partitions = after(cluster(brokers=4), result.records).topics_by_name["new"].partitions
    for each in partitions.values():
        assert len(set(each.replicas)) == 3
        assert (each.isr, each.leader) == (each.replicas, each.replicas[0])
        assert each.directories == tuple(directory(broker_id) for broker_id in each.replicas)


def test_a_fenced_replica_is_not_in_the_isr_of_a_new_partition() -> None:
    image = cluster(broker(3, fenced=True), brokers=2)
    result = run(image, wanted(num_partitions=6, replication_factor=3))
    for each in after(image, result.records).topics_by_name["new"].partitions.values():
        assert sorted(each.replicas) == [1, 2, 3]
        assert each.isr == tuple(broker_id for broker_id in each.replicas if broker_id != 3)
        assert each.leader == each.isr[0]


def test_more_replicas_than_brokers_are_refused_by_name() -> None:
    refused = answer(cluster(brokers=2), wanted(replication_factor=3))
    assert refused.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert refused.error_message == "a replication factor of 3 cannot be reached by 2 brokers"
