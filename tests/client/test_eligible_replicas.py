"""Eligible leader replicas from a broker that answers page by page, and from one that cannot tell."""

from typing import Any

import pytest

from quire.client.admin.eligible_replicas import eligible_replicas
from quire.client.cluster import Cluster
from quire.client.errors import UnsupportedError
from quire.client.offsets import TopicPartition
from quire.protocol.messages import describe_topic_partitions as messages
from quire.steps import Steps, perform

ELIGIBLE = {("a", 0): [2, 3], ("a", 1): [], ("b", 0): [1]}


class PagingBroker:
    """Answers DescribeTopicPartitions, one page for each request."""

    def __init__(self) -> None:
        self.requests = 0

    def ask(self, _node: int, request: messages.DescribeTopicPartitionsRequest, _response: Any) -> Steps[Any]:
        self.requests += 1
        names = {topic.name for topic in request.topics}
        first = ("", 0) if request.cursor is None else (request.cursor.topic_name, request.cursor.partition_index)
        left = [key for key in ELIGIBLE if key[0] in names and key >= first]
        shown, rest = left[: request.response_partition_limit], left[request.response_partition_limit :]
        answer = messages.DescribeTopicPartitionsResponse()
        for name, index in shown:
            partition = messages.DescribeTopicPartitionsResponsePartition(
                partition_index=index, eligible_leader_replicas=ELIGIBLE[name, index] or None
            )
            answer.topics.append(messages.DescribeTopicPartitionsResponseTopic(name=name, partitions=[partition]))
        if rest:
            answer.next_cursor = messages.DescribeTopicPartitionsResponseCursor(
                topic_name=rest[0][0], partition_index=rest[0][1]
            )
        return answer
        yield


class OldBroker:
    def ask(self, *_arguments: Any) -> Steps[Any]:
        raise UnsupportedError("no version of DescribeTopicPartitions in common")
        yield


def found_by(broker: Any, *names: str, page_size: int = 2_000) -> dict[TopicPartition, list[int]]:
    cluster: Cluster = broker
    found = perform(eligible_replicas(cluster, names, page_size=page_size)).value
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(("page_size", "requests"), [(1, 3), (2, 2), (3, 1)])
def test_every_page_is_read(page_size: int, requests: int) -> None:
    broker = PagingBroker()
    assert found_by(broker, "b", "a", page_size=page_size) == {TopicPartition(*key): ELIGIBLE[key] for key in ELIGIBLE}
    assert broker.requests == requests


def test_no_topic_is_not_every_topic() -> None:
    broker = PagingBroker()
    assert (found_by(broker), broker.requests) == ({}, 0)
    assert list(found_by(broker, "b")) == [TopicPartition("b", 0)]


def test_a_broker_that_is_too_old_tells_nothing() -> None:
    assert found_by(OldBroker(), "a") == {}
