"""A topic is created when it is written to or requested, unless the client forbids it."""

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from quire.testing import WireConnection
from tests.wire.clients import WAIT_S, Client, Message, eventually
from tests.wire.conftest import MakeTopic


def test_producing_to_a_new_topic_creates_it(bootstrap: str, make_topic: MakeTopic, client: Client) -> None:
    name = make_topic() + "-automatic"
    assert client.produce(bootstrap, name, [Message(b"first")]) == [0]
    assert [record.value for record in client.consume(bootstrap, name, 1)] == [b"first"]


def test_asking_for_a_topic_creates_it_only_when_that_is_allowed(
    connection: WireConnection, admin: AdminClient, make_topic: MakeTopic
) -> None:
    name = make_topic() + "-asked-for"
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    for _ in range(2):
        (found,) = connection.call(asked, 12, MetadataResponse).topics
        assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    asked.allow_auto_topic_creation = True
    eventually(lambda: connection.call(asked, 12, MetadataResponse).topics[0].error_code == ErrorCode.NONE)
    assert len(admin.list_topics(timeout=WAIT_S).topics[name].partitions) == 1


@pytest.mark.parametrize("name", ["", ".", "with space", "x" * 250])
@pytest.mark.parametrize("allowed", [True, False])
def test_asking_for_an_impossible_name_says_so(connection: WireConnection, name: str, allowed: bool) -> None:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=allowed)
    (found,) = connection.call(asked, 12, MetadataResponse).topics
    assert found.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_bad_name_is_not_created(bootstrap: str, make_topic: MakeTopic) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    errors: list[int] = []
    name = make_topic() + " with a space"
    producer.produce(name, b"v", on_delivery=lambda error, _: errors.append(error.code()))
    assert producer.flush(WAIT_S) == 0
    assert errors == [confluent_kafka.KafkaError.TOPIC_EXCEPTION]
    with pytest.raises(KeyError):
        producer.list_topics(timeout=WAIT_S).topics[name]
