"""Message classes behave like strict data classes, and describe their encoding."""

import copy

import pytest

from quire.protocol.messages.fetch import EpochEndOffset, FetchRequest, FetchTopic, PartitionData
from quire.protocol.messages.metadata import MetadataRequest
from quire.protocol.messages.produce import ProduceRequest, TopicProduceData
from quire.protocol.schema import Struct, array, int32, parse_versions, string


def test_every_field_has_the_default_of_its_schema() -> None:
    request = FetchRequest()
    assert request.max_bytes == 0x7FFFFFFF
    assert request.cluster_id is None
    assert request.topics == []
    assert PartitionData().diverging_epoch == EpochEndOffset(epoch=-1, end_offset=-1)


def test_arrays_and_structures_are_not_shared_between_messages() -> None:
    assert FetchRequest().topics is not FetchRequest().topics
    assert PartitionData().current_leader is not PartitionData().current_leader


def test_fields_are_set_by_keyword_and_can_be_changed() -> None:
    request = MetadataRequest(topics=None)
    request.allow_auto_topic_creation = False
    assert request == MetadataRequest(topics=None, allow_auto_topic_creation=False)


def test_an_unknown_field_name_is_an_error() -> None:
    with pytest.raises(TypeError, match="max_wait"):
        FetchRequest(max_wait=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        FetchRequest().max_wait = 1  # type: ignore[attr-defined]


def test_messages_are_equal_when_their_fields_and_unknown_tags_are() -> None:
    one, other = FetchTopic(topic="a"), FetchTopic(topic="a")
    assert one == other
    other.unknown_tags = {1: b""}
    assert one != other
    assert FetchTopic(topic="a") != FetchTopic(topic="b")
    assert FetchTopic() != TopicProduceData()


def test_a_message_shows_what_differs_from_the_default() -> None:
    assert repr(ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t")])) == (
        "ProduceRequest(acks=-1, topic_data=[TopicProduceData(name='t')])"
    )


def test_messages_can_be_copied() -> None:
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t")])
    duplicate = copy.deepcopy(request)
    duplicate.topic_data[0].name = "u"
    assert request.topic_data[0].name == "t"


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("3+", [3, 4, 99], [2]), ("0-4", [0, 4], [5]), ("2", [2], [1, 3]), ("none", [], [0, 1])],
)
def test_versions_are_written_as_in_kafka(text: str, inside: list[int], outside: list[int]) -> None:
    versions = parse_versions(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)


def test_a_class_lists_its_fields_in_wire_order() -> None:
    class Example(Struct):
        count: int = int32("0+", default=3)
        names: list[str] = array(string, "1+", nullable="2+")

    assert [field.name for field in Example.FIELDS] == ["count", "names"]
    count, names = Example.FIELDS
    assert (count.kind, count.default, count.in_version(0)) == ("int32", 3, True)
    assert (names.kind, names.of, names.in_version(0), names.nullable_in(1)) == ("array", "string", False, False)
    assert Example(names=["x"]).names == ["x"]
