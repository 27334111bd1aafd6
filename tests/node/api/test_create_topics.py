"""CreateTopics: topics are created, or refused one by one."""

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode


def create(node: SimulatedNode, *names: str, version: int = 7) -> dict[str, CreatableTopicResult]:
    topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
    request = CreateTopicsRequest(topics=topics, timeout_ms=1000)
    return {topic.name: topic for topic in node.call(request, version, CreateTopicsResponse).topics}


def test_logs_exist_when_the_client_is_answered(node: SimulatedNode) -> None:
    created = create(node, "t")["t"]
    assert (created.error_code, created.num_partitions, created.replication_factor) == (ErrorCode.NONE, 2, 1)
    assert created.topic_id == node.node.partitions.leader("t", None, 1).partition.topic_id
    assert {"t-0", "t-1"} <= set(node.disk.list_dir("/data"))


def test_a_topic_that_may_not_be_created_is_refused_by_itself(node: SimulatedNode) -> None:
    deny(node, (AclOperation.CREATE, CLUSTER_NAME), (AclOperation.CREATE, "u"))
    created = create(node, "t", "u")
    assert created["t"].error_code == ErrorCode.NONE
    assert created["u"].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert created["u"].error_message == "creating this topic is not allowed"
    assert created["u"].configs == [], "the Java client does not accept null"
    assert set(node.node.image.topics_by_name) == {"t"}


def test_permission_to_create_in_the_cluster_covers_every_topic(node: SimulatedNode) -> None:
    deny(node, (AclOperation.CREATE, "u"))
    assert create(node, "u")["u"].error_code == ErrorCode.NONE
