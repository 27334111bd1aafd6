"""Which partitions exist, according to several brokers, one of which has old metadata."""

import pytest

from pyspark_quire.errors import QuireError
from pyspark_quire.options import Options, Use
from pyspark_quire.subscription import Partitions, find_partitions
from quire.client.offsets import TopicPartition
from quire.protocol.uuids import to_text
from tests.client.model_cluster import ModelCluster, ModelTopic

BY_NAME = Options({"subscribe": "t"}, Use.STREAM_READ)
BY_PATTERN = Options({"subscribePattern": "t.*"}, Use.STREAM_READ)
BY_PARTITION = Options({"assign": '{"t": [0, 1]}'}, Use.STREAM_READ)
ALL = [BY_NAME, BY_PATTERN, BY_PARTITION]


def topic_partitions(topic: ModelTopic) -> Partitions:
    return {TopicPartition(topic.name, index): to_text(topic.topic_id) for index in range(len(topic.partitions))}


def hear_later(model: ModelCluster, topic: ModelTopic) -> None:
    """The broker returns this metadata of the topic after half a second."""
    model.clock.call_later(500, lambda: model.topics.update({topic.name: topic}))


@pytest.mark.parametrize("options", ALL)
@pytest.mark.parametrize("stale", ["nothing", "fewer partitions", "the topic before it"])
def test_a_broker_with_old_metadata_does_not_remove_known_partitions(options: Options, stale: str) -> None:
    model = ModelCluster()
    topic = model.create("t", partitions=2)
    if stale == "nothing":
        del model.topics["t"]
    elif stale == "fewer partitions":
        model.topics["t"] = ModelTopic("t", topic.topic_id, topic.partitions[:1])
    else:
        model.create("t", partitions=2)
    hear_later(model, topic)
    assert model.run(find_partitions(model.client(), options, topic_partitions(topic))) == topic_partitions(topic)


@pytest.mark.parametrize("options", ALL)
def test_partitions_that_stay_missing_are_left_out_where_that_is_known(options: Options) -> None:
    model = ModelCluster()
    topic = model.create("t", partitions=2)
    known = topic_partitions(topic)
    model.topics["t"] = ModelTopic("t", topic.topic_id, topic.partitions[:1])
    assert list(model.run(find_partitions(model.client(), options, known))) == [TopicPartition("t", 0)]
    del model.topics["t"]
    assert model.run(find_partitions(model.client(), options, known)) == {}


def test_a_topic_that_was_made_a_moment_ago_is_found_and_one_that_does_not_exist_is_an_error() -> None:
    model = ModelCluster()
    topic = model.create("t")
    del model.topics["t"]
    hear_later(model, topic)
    assert model.run(find_partitions(model.client(), BY_NAME)) == topic_partitions(topic)
    del model.topics["t"]
    with pytest.raises(
        QuireError, match=r"^topic t does not exist; create it first .*, or let .* wait for it with subscribePattern$"
    ):
        model.run(find_partitions(model.client(), BY_NAME))
    assert model.run(find_partitions(model.client(), BY_NAME, lenient=True)) == {}
