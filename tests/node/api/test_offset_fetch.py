"""OffsetFetch: one group in the first versions, several since version 8."""

import pytest

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
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


@pytest.mark.parametrize("version", [1, 2, 7])
def test_one_group_is_answered_in_the_fields_of_the_first_versions(node: SimulatedNode, version: int) -> None:
    wanted = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    answer = node.call(OffsetFetchRequest(group_id=GROUP, topics=wanted), version, OffsetFetchResponse)
    (topic,) = answer.topics
    assert (answer.error_code, topic.name, topic.partitions[0].committed_offset) == (ErrorCode.NONE, "t", 5)


@pytest.mark.parametrize(("version", "of_request"), [(1, ErrorCode.NONE), (2, ErrorCode.GROUP_AUTHORIZATION_FAILED)])
def test_an_error_of_the_group_is_in_each_partition_until_version_1(
    node: SimulatedNode, version: int, of_request: ErrorCode
) -> None:
    deny(node, (AclOperation.DESCRIBE, GROUP))
    wanted = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    answer = node.call(OffsetFetchRequest(group_id=GROUP, topics=wanted), version, OffsetFetchResponse)
    assert answer.error_code == of_request
    codes = [partition.error_code for topic in answer.topics for partition in topic.partitions]
    assert codes == ([ErrorCode.GROUP_AUTHORIZATION_FAILED] if version == 1 else [])


def test_groups_are_answered_or_refused_one_by_one(node: SimulatedNode) -> None:
    deny(node, (AclOperation.DESCRIBE, "secret"))
    groups = [OffsetFetchRequestGroup(group_id=group, topics=None) for group in (GROUP, "secret", "unknown", GROUP)]
    answer = node.call(OffsetFetchRequest(groups=groups), 9, OffsetFetchResponse)
    assert [(group.group_id, group.error_code, len(group.topics)) for group in answer.groups] == [
        (GROUP, ErrorCode.NONE, 2),
        ("secret", ErrorCode.GROUP_AUTHORIZATION_FAILED, 0),
        ("unknown", ErrorCode.NONE, 0),
    ]


def test_a_topic_that_may_not_be_read_is_refused_by_name_and_left_out_of_all(node: SimulatedNode) -> None:
    deny(node, (AclOperation.READ, "u"))
    assert offsets(fetch(node, "t", "u")) == {
        "t": (5, ErrorCode.NONE),
        "u": (-1, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    }
    assert offsets(fetch(node)) == {"t": (5, ErrorCode.NONE)}
