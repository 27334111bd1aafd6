"""DeleteTopics, compared with Apache Kafka 4.3.1's answers to the same requests."""

import pytest

from quire.config.broker_config import BrokerConfig
from quire.controller.controller_result import collected
from quire.controller.delete_topics import delete_topics
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.controller.images import CONFIG, TOPIC_ID, after, cluster, partition, setting, topic

IMAGE = cluster(topic(), partition(), setting(2, "orders", "retention.ms", "1"), topic("other", b"o" * 16))


@pytest.mark.parametrize(
    "request_",
    [
        DeleteTopicsRequest(topic_names=["orders"]),
        DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")]),
        DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=TOPIC_ID)]),
    ],
    ids=["a list of names", "by name", "by id"],
)
def test_deleting_a_topic_deletes_its_settings(request_: DeleteTopicsRequest) -> None:
    result = collected(delete_topics(IMAGE, CONFIG, request_))
    answered = result.response.responses[0]
    assert (answered.name, answered.topic_id, answered.error_code) == ("orders", TOPIC_ID, ErrorCode.NONE)
    later = after(IMAGE, result.records)
    assert list(later.topics_by_name) == ["other"]
    assert later.configs == {}


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (DeleteTopicState(name="gone"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (DeleteTopicState(name=""), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (DeleteTopicState(topic_id=b"z" * 16), ErrorCode.UNKNOWN_TOPIC_ID),
        (DeleteTopicState(name="orders", topic_id=TOPIC_ID), ErrorCode.INVALID_REQUEST),
        (DeleteTopicState(), ErrorCode.INVALID_REQUEST),
    ],
    ids=str,
)
def test_topics_that_cannot_be_deleted(state: DeleteTopicState, code: ErrorCode) -> None:
    result = collected(delete_topics(IMAGE, CONFIG, DeleteTopicsRequest(topics=[state])))
    answered = result.response.responses[0]
    assert (answered.name, answered.topic_id, answered.error_code) == (state.name, state.topic_id, code)
    assert result.records == []


def test_a_topic_named_twice_is_refused_once() -> None:
    state = DeleteTopicState(name="orders")
    result = collected(delete_topics(IMAGE, CONFIG, DeleteTopicsRequest(topics=[state, state])))
    assert [each.error_code for each in result.response.responses] == [ErrorCode.INVALID_REQUEST]
    assert result.records == []


def test_a_topic_named_by_name_and_by_id_is_deleted_once() -> None:
    states = [DeleteTopicState(name="orders"), DeleteTopicState(topic_id=TOPIC_ID)]
    result = collected(delete_topics(IMAGE, CONFIG, DeleteTopicsRequest(topics=states)))
    assert [each.error_code for each in result.response.responses] == [0, ErrorCode.INVALID_REQUEST]
    assert len(result.records) == 1


def test_deletion_can_be_switched_off() -> None:
    config = BrokerConfig.standalone({"delete.topic.enable": "false"})
    result = collected(delete_topics(IMAGE, config, DeleteTopicsRequest(topic_names=["orders"])))
    assert result.response.responses[0].error_code == ErrorCode.TOPIC_DELETION_DISABLED
