"""OffsetCommit: topics are committed or refused one by one, by name and by id."""

import pytest

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.offset_commit import OffsetCommitResponse
from tests.node.api.denying import deny
from tests.node.api.offset_requests import GROUP, commit, commit_request, fetch, offsets
from tests.node.conftest import SimulatedNode


@pytest.fixture
def node(coordinator: SimulatedNode) -> SimulatedNode:
    coordinator.create_topic("u")
    return coordinator


def test_a_committed_offset_is_fetched(node: SimulatedNode) -> None:
    assert commit(node, 5, "t") == {"t": ErrorCode.NONE}
    assert offsets(fetch(node)) == {"t": (5, ErrorCode.NONE)}


def test_topics_are_named_by_id_from_version_10_on(node: SimulatedNode) -> None:
    topic = node.node.image.topic("t")
    assert topic is not None
    request = commit_request(5, "t", "u")
    known, unknown = request.topics
    known.topic_id, unknown.topic_id = topic.topic_id, bytes(range(16))
    answer = node.call(request, 10, OffsetCommitResponse)
    assert {each.topic_id: each.partitions[0].error_code for each in answer.topics} == {
        topic.topic_id: ErrorCode.NONE,
        bytes(range(16)): ErrorCode.UNKNOWN_TOPIC_ID,
    }


@pytest.mark.parametrize("portion", [1, 1000])
def test_a_topic_that_may_not_be_read_is_refused_by_itself(
    node: SimulatedNode, monkeypatch: pytest.MonkeyPatch, portion: int
) -> None:
    monkeypatch.setattr("quire.node.offset_portions.PORTION", portion)
    deny(node, (AclOperation.READ, "u"))
    expected = {"t": ErrorCode.NONE, "u": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert commit(node, 5, "t", "u") == expected
    assert offsets(fetch(node)) == {"t": (5, ErrorCode.NONE)}


def test_a_group_that_may_not_be_read_is_refused(node: SimulatedNode) -> None:
    deny(node, (AclOperation.READ, GROUP))
    assert commit(node, 5, "t") == {"t": ErrorCode.GROUP_AUTHORIZATION_FAILED}
