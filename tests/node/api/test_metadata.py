"""Metadata: brokers, topics by name and by id, and topics that are created by asking for them."""

from collections.abc import Callable

import pytest

from quire.node.authorizer import TOPIC_OPERATIONS, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode


def test_a_topic_is_created_by_asking_for_it_where_that_is_allowed(
    make_node: Callable[..., SimulatedNode],
) -> None:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="fresh")], allow_auto_topic_creation=True)
    allowed = make_node().start()
    assert allowed.call(asked, 12, MetadataResponse).topics[0].partitions[0].leader_id == 1
    strict = make_node(settings={"auto.create.topics.enable": "false"}).start()
    refused = strict.call(asked, 12, MetadataResponse).topics[0]
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_named_twice_is_described_once(node: SimulatedNode) -> None:
    node.create_topic("t")
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")] * 3)
    assert [topic.name for topic in node.call(request, 12, MetadataResponse).topics] == ["t"]


@pytest.mark.parametrize(("version", "expected"), [(0, ["t", "u"]), (1, [])])
def test_no_topics_means_all_in_version_0_and_none_since(
    node: SimulatedNode, version: int, expected: list[str]
) -> None:
    node.create_topic("t")
    node.create_topic("u")
    answer = node.call(MetadataRequest(topics=[]), version, MetadataResponse)
    assert [topic.name for topic in answer.topics] == expected
    assert [(broker.node_id, broker.port) for broker in answer.brokers] == [(1, node.node.ports["PLAINTEXT"])]


@pytest.mark.parametrize(("version", "name"), [(11, ""), (12, None)])
def test_an_unknown_topic_id_has_no_name(node: SimulatedNode, version: int, name: str | None) -> None:
    wanted = MetadataRequestTopic(topic_id=bytes(range(16)), name="" if version < 12 else None)
    (topic,) = node.call(MetadataRequest(topics=[wanted]), version, MetadataResponse).topics
    assert (topic.error_code, topic.name) == (ErrorCode.UNKNOWN_TOPIC_ID, name)


@pytest.mark.parametrize("name", ["", ".", "a b", "x" * 250])
def test_an_impossible_name_is_refused_and_not_created(node: SimulatedNode, name: str) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    (topic,) = node.call(request, 12, MetadataResponse).topics
    assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert node.node.image.topics_by_name == {}


def test_a_topic_that_may_not_be_described_is_refused_by_name_and_left_out_of_all(node: SimulatedNode) -> None:
    node.create_topic("t")
    node.create_topic("u")
    deny(node, (AclOperation.DESCRIBE, "u"))
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t"), MetadataRequestTopic(name="u")])
    answer = node.call(request, 12, MetadataResponse)
    assert [(topic.name, topic.error_code, len(topic.partitions)) for topic in answer.topics] == [
        ("t", ErrorCode.NONE, 1),
        ("u", ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0),
    ]
    everything = node.call(MetadataRequest(topics=None), 12, MetadataResponse)
    assert [topic.name for topic in everything.topics] == ["t"]


def test_a_topic_that_may_not_be_created_is_unknown(node: SimulatedNode) -> None:
    deny(node, (AclOperation.CREATE, "fresh"))
    request = MetadataRequest(topics=[MetadataRequestTopic(name="fresh")], allow_auto_topic_creation=True)
    (topic,) = node.call(request, 12, MetadataResponse).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert node.node.image.topic("fresh") is None


def test_authorized_operations_are_described_on_request(node: SimulatedNode) -> None:
    node.create_topic("t")
    deny(node, (AclOperation.DELETE, "t"))
    request = MetadataRequest(topics=None, include_topic_authorized_operations=True)
    (topic,) = node.call(request, 12, MetadataResponse).topics
    allowed = {each for each in TOPIC_OPERATIONS if topic.topic_authorized_operations & (1 << each)}
    assert allowed == set(TOPIC_OPERATIONS) - {AclOperation.DELETE}
