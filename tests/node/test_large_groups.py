"""Groups on a whole node with more offsets than fit into one append."""

import pytest

from quire.coordinators.group.offsets import tombstones
from quire.coordinators.runtime.shard import ShardState
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from quire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quire.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from quire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tests.node.conftest import SimulatedNode

TOPIC, GROUP = "t", "g"
PARTITIONS = 50
TOPIC_RESOURCE, BROKER = 2, 4


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> SimulatedNode:
    monkeypatch.setattr(tombstones, "MAX_RECORDS", 10)
    node = SimulatedNode(settings={"offsets.topic.num.partitions": "1", "message.max.bytes": "20000"}).start()
    node.create_topic(TOPIC, PARTITIONS)
    node.call(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 6, FindCoordinatorResponse)
    node.clock.run_until(lambda: all(shard.state is ShardState.ACTIVE for shard in node.node.coordinators.groups))
    return node


def commit(node: SimulatedNode, group: str, *partitions: int, metadata: str = "") -> list[int]:
    commits = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata=metadata)
        for index in partitions
    ]
    request = OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=commits)])
    return [each.error_code for each in node.call(request, 8, OffsetCommitResponse).topics[0].partitions]


def delete(node: SimulatedNode, *groups: str) -> dict[str, int]:
    answer = node.call(DeleteGroupsRequest(groups_names=list(groups)), 2, DeleteGroupsResponse)
    return {result.group_id: result.error_code for result in answer.results}


def alter(node: SimulatedNode, resource_type: int, name: str, setting: str, value: int) -> None:
    resource = AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[AlterableConfig(name=setting, config_operation=0, value=str(value))],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (answer,) = node.call(request, 1, IncrementalAlterConfigsResponse).responses
    assert answer.error_code == ErrorCode.NONE


def groups(node: SimulatedNode) -> list[str]:
    return [group.group_id for group in node.call(ListGroupsRequest(), 5, ListGroupsResponse).groups]


def test_a_group_is_deleted_in_as_many_steps_as_it_takes(node: SimulatedNode) -> None:
    commit(node, GROUP, *range(PARTITIONS))
    commit(node, "other", *range(PARTITIONS))
    (log,) = node.node.partitions.of_topic("__consumer_offsets")
    before = log.high_watermark
    assert delete(node, GROUP, "nobody") == {GROUP: ErrorCode.NONE, "nobody": ErrorCode.GROUP_ID_NOT_FOUND}
    assert log.high_watermark - before == PARTITIONS + 1
    assert groups(node) == ["other"]


def test_a_commit_that_is_too_large_to_be_kept_is_refused_and_changes_nothing(node: SimulatedNode) -> None:
    """No client expects an error about a message's size from a coordinator, and Kafka does not send one."""
    assert set(commit(node, GROUP, *range(10), metadata="m" * 3000)) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert groups(node) == []
    assert commit(node, GROUP, 1, metadata="m" * 3000) == [ErrorCode.NONE]


def test_the_size_limit_is_that_of_the_current_settings_the_internal_topics_own_first(node: SimulatedNode) -> None:
    def outcome() -> set[int]:
        return set(commit(node, GROUP, *range(10), metadata="m" * 3000))

    alter(node, BROKER, "", "message.max.bytes", 1_000_000)
    assert outcome() == {ErrorCode.NONE}
    alter(node, TOPIC_RESOURCE, "__consumer_offsets", "max.message.bytes", 20_000)
    assert outcome() == {ErrorCode.UNKNOWN_SERVER_ERROR}
    alter(node, TOPIC_RESOURCE, "__consumer_offsets", "max.message.bytes", 2_000_000)
    alter(node, BROKER, "", "message.max.bytes", 20_000)
    assert outcome() == {ErrorCode.NONE}


def test_a_group_can_be_deleted_however_little_the_log_takes_at_once(
    node: SimulatedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tombstones, "MAX_RECORDS", 1_000)
    commit(node, GROUP, *range(PARTITIONS))
    alter(node, TOPIC_RESOURCE, "__consumer_offsets", "max.message.bytes", 1_000)
    assert delete(node, GROUP) == {GROUP: ErrorCode.NONE}
    assert groups(node) == []
