"""CreatePartitions, compared with Apache Kafka 4.3.1's answers to the same requests."""

import pytest

from quire.controller.controller_result import ControllerResult, collected
from quire.controller.create_partitions import create_partitions
from quire.metadata.image import ClusterImage
from quire.protocol.errors import ErrorCode
from quire.protocol.internal_topics import GROUP_OFFSETS, TRANSACTION_STATE
from quire.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from simulator.random import SimRandom
from tests.controller.images import after, cluster, partition, topic

IMAGE = cluster(topic(), partition(0, (1, 2)), brokers=2)


def run(
    *topics: CreatePartitionsTopic, validate_only: bool = False, image: ClusterImage = IMAGE
) -> ControllerResult[CreatePartitionsResponse]:
    request = CreatePartitionsRequest(topics=list(topics), validate_only=validate_only)
    return collected(create_partitions(image, SimRandom(1), request))


def wanted(count: int, *assigned: list[int], name: str = "orders", by_hand: bool = False) -> CreatePartitionsTopic:
    assignments = [CreatePartitionsAssignment(broker_ids=each) for each in assigned]
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments if assigned or by_hand else None)


def test_new_partitions_have_as_many_replicas_as_the_old() -> None:
    result = run(wanted(3))
    assert (result.response.results[0].error_code, result.response.results[0].error_message) == (0, None)
    partitions = after(IMAGE, result.records).topics_by_name["orders"].partitions
    assert sorted(partitions) == [0, 1, 2]
    assert all(sorted(each.replicas) == [1, 2] and each.has_leader for each in partitions.values())


def test_they_can_be_assigned_by_hand() -> None:
    result = run(wanted(3, [2, 1], [1, 2]))
    partitions = after(IMAGE, result.records).topics_by_name["orders"].partitions
    assert [partitions[index].replicas for index in (1, 2)] == [(2, 1), (1, 2)]


def test_validating_writes_nothing() -> None:
    result = run(wanted(3), validate_only=True)
    assert result.records == [] and result.response.results[0].error_code == 0


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (wanted(1), ErrorCode.INVALID_PARTITIONS),
        (wanted(0), ErrorCode.INVALID_PARTITIONS),
        (wanted(-1), ErrorCode.INVALID_PARTITIONS),
        (wanted(20_000), ErrorCode.POLICY_VIOLATION),
        (wanted(2, name="gone"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (wanted(3, [1, 2]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wanted(2, [1, 2], [1, 2]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wanted(2, by_hand=True), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wanted(2, [9, 1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wanted(2, [1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wanted(2, [1, 1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=str,
)
def test_partitions_that_cannot_be_added(asked: CreatePartitionsTopic, code: ErrorCode) -> None:
    result = run(asked)
    assert result.response.results[0].error_code == code
    assert result.records == []


def test_a_topic_named_twice_is_refused_once() -> None:
    result = run(wanted(2), wanted(3))
    assert [each.error_code for each in result.response.results] == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("name", [GROUP_OFFSETS, TRANSACTION_STATE])
def test_partitions_of_internal_topics_are_not_added(name: str) -> None:
    image = cluster(topic(name), partition(0, (1, 2)), brokers=2)
    result = run(wanted(3, name=name), image=image)
    assert result.response.results[0].error_code == ErrorCode.INVALID_PARTITIONS
    assert result.records == []
