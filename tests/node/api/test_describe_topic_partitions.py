"""DescribeTopicPartitions: pages of topics in the order of their names."""

from collections.abc import Callable

import pytest

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode

Page = list[tuple[str | None, list[int]]]


def describe(
    node: SimulatedNode, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None
        if cursor is None
        else DescribeTopicPartitionsRequestCursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return node.call(request, 0, DescribeTopicPartitionsResponse)


def page(answer: DescribeTopicPartitionsResponse) -> Page:
    return [(topic.name, [each.partition_index for each in topic.partitions]) for topic in answer.topics]


def next_cursor(answer: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = answer.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


def test_pages_follow_one_another_without_gaps_or_repeats(node: SimulatedNode) -> None:
    for name, partitions in (("b", 3), ("a", 2), ("c", 1)):
        node.create_topic(name, partitions=partitions)
    expected: list[tuple[Page, tuple[str, int] | None]] = [
        ([("a", [0, 1])], ("b", 0)),
        ([("b", [0, 1])], ("b", 2)),
        ([("b", [2]), ("c", [0])], None),
    ]
    cursor = None
    for topics, following in expected:
        answer = describe(node, limit=2, cursor=cursor)
        assert (page(answer), next_cursor(answer)) == (topics, following)
        cursor = next_cursor(answer)


def test_the_brokers_own_limit_holds_for_every_client(make_node: Callable[..., SimulatedNode]) -> None:
    node = make_node(settings={"max.request.partition.size.limit": "2"}).start()
    node.create_topic("t", partitions=3)
    answer = describe(node, limit=1000)
    assert (page(answer), next_cursor(answer)) == ([("t", [0, 1])], ("t", 2))


def test_topics_are_described_or_refused_one_by_one(node: SimulatedNode) -> None:
    node.create_topic("t")
    node.create_topic("u")
    deny(node, (AclOperation.DESCRIBE, "u"))
    answer = describe(node, "u", "unknown", "t", "t")
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("t", ErrorCode.NONE),
        ("u", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


@pytest.mark.parametrize(("limit", "cursor"), [(0, None), (-1, None), (10, ("t", -1))])
def test_an_impossible_page_is_refused(node: SimulatedNode, limit: int, cursor: tuple[str, int] | None) -> None:
    node.create_topic("t")
    answer = describe(node, "t", limit=limit, cursor=cursor)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [("t", ErrorCode.INVALID_REQUEST)]
