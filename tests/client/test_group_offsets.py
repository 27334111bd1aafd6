"""Committed offsets as readers use them; test_coordinators has what admin commands use."""

import pytest

from quire.client.group_offsets import OffsetAndMetadata, commit_offsets, fetch_offsets
from quire.client.offsets import TopicPartition
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.client.model_coordinators import CoordinatedCluster

TOPIC_PARTITION = TopicPartition("t", 0)


def test_committed_offsets_are_fetched() -> None:
    model = CoordinatedCluster(nodes=2)
    cluster = model.client()
    model.run(commit_offsets(cluster, "g", {TOPIC_PARTITION: OffsetAndMetadata(5)}))
    assert model.run(fetch_offsets(cluster, "g")) == {TOPIC_PARTITION: OffsetAndMetadata(5)}
    assert model.run(fetch_offsets(cluster, "never seen")) == {}


def test_only_the_partitions_wanted_are_asked_for() -> None:
    model = CoordinatedCluster()
    model.run(fetch_offsets(model.client(), "g", [TOPIC_PARTITION, TopicPartition("u", 3), TopicPartition("t", 1)]))
    request = model.requests[-1][1]
    assert isinstance(request, OffsetFetchRequest)
    topics = request.groups[0].topics
    assert topics is not None
    assert [(topic.name, topic.partition_indexes) for topic in topics] == [("t", [0, 1]), ("u", [3])]


def test_an_open_transaction_is_waited_for() -> None:
    model = CoordinatedCluster()
    model.group("g").offsets[TOPIC_PARTITION] = 5
    model.unstable("g", times=3)
    assert model.run(fetch_offsets(model.client(), "g")) == {TOPIC_PARTITION: OffsetAndMetadata(5)}


def test_a_transaction_that_stays_open_is_an_error_after_the_request_timeout() -> None:
    model = CoordinatedCluster()
    model.unstable("g", times=1_000_000)
    with pytest.raises(ApiError) as caught:
        model.run(fetch_offsets(model.client(), "g"))
    assert caught.value.code == ErrorCode.UNSTABLE_OFFSET_COMMIT


def test_fetching_without_require_stable_does_not_wait() -> None:
    model = CoordinatedCluster()
    model.group("g").offsets[TOPIC_PARTITION] = 5
    model.unstable("g", times=1_000_000)
    assert model.run(fetch_offsets(model.client(), "g", require_stable=False)) == {
        TOPIC_PARTITION: OffsetAndMetadata(5)
    }


def test_a_refused_commit_is_raised() -> None:
    model = CoordinatedCluster()
    model.group("g", state="Stable")
    with pytest.raises(ApiError, match="has members"):
        model.run(commit_offsets(model.client(), "g", {TOPIC_PARTITION: OffsetAndMetadata(5)}))
