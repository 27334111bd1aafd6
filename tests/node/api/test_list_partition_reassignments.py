"""ListPartitionReassignments over both listeners."""

import pytest

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from tests.node.api.denying import deny
from tests.node.api.other_nodes import OTHER_ID, beat, controller_connection, lose_controller, register
from tests.node.api.test_alter_partition_reassignments import reassign
from tests.node.conftest import SimulatedNode


def listed(node: SimulatedNode, *partitions: int) -> ListPartitionReassignmentsResponse:
    topics = [ListPartitionReassignmentsTopics(name="t", partition_indexes=list(partitions))] if partitions else None
    return node.call(
        ListPartitionReassignmentsRequest(timeout_ms=1000, topics=topics), 0, ListPartitionReassignmentsResponse
    )


@pytest.mark.parametrize("on_controller", [False, True])
def test_what_is_in_progress_is_listed(node: SimulatedNode, on_controller: bool) -> None:
    node.create_topic("t", partitions=2)
    beat(node, register(node))
    if on_controller:
        node.info = controller_connection()
    reassign(node, [OTHER_ID])
    own = node.node.node_id
    for response in (listed(node), listed(node, 0, 1, 9)):
        (topic,) = response.topics
        (found,) = topic.partitions
        assert (topic.name, found.partition_index, found.replicas) == ("t", 0, [OTHER_ID, own])
        assert (found.adding_replicas, found.removing_replicas) == ([OTHER_ID], [own])
    assert listed(node, 1).topics == []


def test_listing_needs_describe_on_the_cluster(node: SimulatedNode) -> None:
    deny(node, (AclOperation.DESCRIBE, CLUSTER_NAME))
    assert listed(node).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_controller_that_is_not_active_says_so(node: SimulatedNode) -> None:
    lose_controller(node)
    node.info = controller_connection()
    assert listed(node).error_code == ErrorCode.NOT_CONTROLLER
