"""CreatePartitions: topics grow, each with its own result."""

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode


def grow(node: SimulatedNode, **counts: int) -> dict[str, CreatePartitionsTopicResult]:
    topics = [CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in counts.items()]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=1000)
    return {result.name: result for result in node.call(request, 3, CreatePartitionsResponse).results}


def test_new_partitions_have_a_leader_when_the_client_is_answered(node: SimulatedNode) -> None:
    node.create_topic("t")
    assert grow(node, t=3)["t"].error_code == ErrorCode.NONE
    assert [node.node.partitions.leader("t", None, index).partition.index for index in range(3)] == [0, 1, 2]


def test_one_topic_is_refused_and_the_other_grows(node: SimulatedNode) -> None:
    node.create_topic("t", partitions=2)
    results = grow(node, t=3, unknown=2)
    assert results["t"].error_code == ErrorCode.NONE
    assert results["unknown"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_does_not_shrink(node: SimulatedNode) -> None:
    node.create_topic("t", partitions=2)
    assert grow(node, t=1)["t"].error_code == ErrorCode.INVALID_PARTITIONS


def test_the_whole_request_is_refused_if_one_topic_may_not_be_altered(node: SimulatedNode) -> None:
    node.create_topic("t")
    node.create_topic("u")
    deny(node, (AclOperation.ALTER, "u"))
    results = grow(node, t=2, u=2)
    assert {(result.error_code, result.error_message) for result in results.values()} == {
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "altering u is not allowed")
    }
    assert len(node.node.partitions.of_topic("t")) == 1
