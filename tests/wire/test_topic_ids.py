"""Topics by id: returned in metadata, used to produce, fetch and delete, never reused."""

from quire.protocol import uuids
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from quire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from quire.testing import WireConnection
from tests.wire.batches import batch
from tests.wire.clients import at_once
from tests.wire.conftest import MakeTopic
from tests.wire.raw import fetch, produce, records_of, topic_metadata

UNKNOWN_ID = b"0123456789abcdef"


def by_id(connection: WireConnection, topic_id: bytes, version: int = 12) -> tuple[int, str | None]:
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name=None)])
    (found,) = connection.call(request, version, MetadataResponse).topics
    assert found.topic_id == topic_id
    return found.error_code, found.name


def test_every_topic_has_its_own_id(connection: WireConnection, make_topic: MakeTopic) -> None:
    ids = [topic_metadata(connection, make_topic()).topic_id for _ in range(3)]
    assert len({*ids, uuids.ZERO}) == 4


def test_a_topic_is_found_by_its_id(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic_id = topic_metadata(connection, topic).topic_id
    assert by_id(connection, topic_id) == (ErrorCode.NONE, topic)
    assert by_id(connection, topic_id, 13) == (ErrorCode.NONE, topic)


def test_an_unknown_id_gets_the_error_for_it(connection: WireConnection) -> None:
    assert by_id(connection, UNKNOWN_ID) == (ErrorCode.UNKNOWN_TOPIC_ID, None)


def test_records_produced_by_id_are_fetched_by_name_and_by_id(
    connection: WireConnection, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    assert produce(connection, topic, batch(), version=13).error_code == ErrorCode.NONE
    by_name, with_id = fetch(connection, topic, version=12), fetch(connection, topic, version=13)
    assert records_of(by_name) == records_of(with_id) == batch(leader_epoch=0)


def test_a_topic_is_deleted_by_its_id_and_the_id_becomes_unknown(
    connection: WireConnection, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    topic_id = topic_metadata(connection, topic).topic_id
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(topic_id=topic_id), DeleteTopicState(topic_id=UNKNOWN_ID)], timeout_ms=5000
    )
    answer = connection.call(request, 6, DeleteTopicsResponse)
    results = {found.topic_id: (found.error_code, found.name) for found in answer.responses}
    assert results == {topic_id: (ErrorCode.NONE, topic), UNKNOWN_ID: (ErrorCode.UNKNOWN_TOPIC_ID, None)}
    at_once(lambda: by_id(connection, topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None))
