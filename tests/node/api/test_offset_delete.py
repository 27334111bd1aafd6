"""OffsetDelete: offsets of some partitions are deleted, the others stay."""

import pytest

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tests.node.api.denying import deny
from tests.node.api.offset_requests import GROUP, commit, fetch, offsets
from tests.node.conftest import SimulatedNode


@pytest.fixture
def node(coordinator: SimulatedNode) -> SimulatedNode:
    """With offsets of two topics."""
    coordinator.create_topic("u")
    assert commit(coordinator, 5, "t", "u") == {"t": ErrorCode.NONE, "u": ErrorCode.NONE}
    return coordinator


def delete(node: SimulatedNode, *topics: str, group: str = GROUP) -> tuple[int, dict[str, int]]:
    """The error of the whole request, and those by topic."""
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    wanted = [OffsetDeleteRequestTopic(name=topic, partitions=partitions) for topic in topics]
    answer = node.call(OffsetDeleteRequest(group_id=group, topics=wanted), 0, OffsetDeleteResponse)
    return answer.error_code, {topic.name: topic.partitions[0].error_code for topic in answer.topics}


def test_only_the_offsets_that_are_named_are_deleted(node: SimulatedNode) -> None:
    assert delete(node, "t") == (ErrorCode.NONE, {"t": ErrorCode.NONE})
    assert offsets(fetch(node)) == {"u": (5, ErrorCode.NONE)}


def test_an_unknown_group_is_an_error_of_the_whole_request(node: SimulatedNode) -> None:
    assert delete(node, "t", group="unknown") == (ErrorCode.GROUP_ID_NOT_FOUND, {})


@pytest.mark.parametrize("portion", [1, 1000])
def test_a_topic_that_may_not_be_read_is_refused_by_itself(
    node: SimulatedNode, monkeypatch: pytest.MonkeyPatch, portion: int
) -> None:
    monkeypatch.setattr("quire.node.offset_portions.PORTION", portion)
    deny(node, (AclOperation.READ, "u"))
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert delete(node, "t", "u") == (ErrorCode.NONE, {"t": ErrorCode.NONE, "u": refused})
    deny(node)
    assert offsets(fetch(node)) == {"u": (5, ErrorCode.NONE)}


def test_a_group_that_may_not_be_deleted_is_refused(node: SimulatedNode) -> None:
    deny(node, (AclOperation.DELETE, GROUP))
    assert delete(node, "t") == (ErrorCode.GROUP_AUTHORIZATION_FAILED, {})
