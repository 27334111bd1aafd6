"""DeleteTopics: by name or by id, if the cluster allows it at all."""

from collections.abc import Callable

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode


def delete(node: SimulatedNode, *names: str) -> list[DeletableTopicResult]:
    request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=1000)
    return node.call(request, 5, DeleteTopicsResponse).responses


def delete_by_id(node: SimulatedNode, topic_id: bytes) -> DeletableTopicResult:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)], timeout_ms=1000)
    (answer,) = node.call(request, 6, DeleteTopicsResponse).responses
    return answer


def topic_id(node: SimulatedNode, name: str) -> bytes:
    topic = node.node.image.topic(name)
    assert topic is not None
    return topic.topic_id


def test_a_topic_is_deleted_by_its_id(node: SimulatedNode) -> None:
    node.create_topic("t")
    assert delete_by_id(node, topic_id(node, "t")).error_code == ErrorCode.NONE
    assert node.node.image.topic("t") is None


def test_an_unknown_name_and_an_unknown_id_are_different_errors(node: SimulatedNode) -> None:
    assert [answer.error_code for answer in delete(node, "unknown")] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert delete_by_id(node, bytes(range(16))).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_nothing_is_deleted_if_the_cluster_does_not_allow_it(make_node: Callable[..., SimulatedNode]) -> None:
    node = make_node(settings={"delete.topic.enable": "false"}).start()
    node.create_topic("t")
    (answer,) = delete(node, "t")
    assert answer.error_code == ErrorCode.TOPIC_DELETION_DISABLED
    assert answer.error_message == "delete.topic.enable is false on this cluster"


def test_clients_that_do_not_know_the_error_get_invalid_request(make_node: Callable[..., SimulatedNode]) -> None:
    node = make_node(settings={"delete.topic.enable": "false"}).start()
    node.create_topic("t")
    request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)
    codes = [node.call(request, version, DeleteTopicsResponse).responses[0].error_code for version in (1, 2, 3)]
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST, ErrorCode.TOPIC_DELETION_DISABLED]
    assert node.node.image.topic("t") is not None


def test_the_whole_request_is_refused_if_one_topic_may_not_be_deleted(node: SimulatedNode) -> None:
    node.create_topic("t")
    node.create_topic("u")
    deny(node, (AclOperation.DELETE, "u"))
    assert [(answer.name, answer.error_code) for answer in delete(node, "t", "u")] == [
        ("t", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("u", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ]
    assert delete_by_id(node, topic_id(node, "u")).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert set(node.node.image.topics_by_name) == {"t", "u"}
