"""AlterPartitionReassignments over both listeners; the transcripts of tests/controller have the reassignments."""

import pytest

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.node.api.denying import deny
from tests.node.api.other_nodes import OTHER_ID, beat, controller_connection, lose_controller, register
from tests.node.conftest import SimulatedNode

VERSIONS = (0, 1)


def reassign(
    node: SimulatedNode, replicas: list[int] | None, *, version: int = 1, may_change_factor: bool = True
) -> AlterPartitionReassignmentsResponse:
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=1000,
        allow_replication_factor_change=may_change_factor,
        topics=[ReassignableTopic(name="t", partitions=[partition])],
    )
    return node.call(request, version, AlterPartitionReassignmentsResponse)


def code(response: AlterPartitionReassignmentsResponse) -> int:
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    return response.responses[0].partitions[0].error_code


@pytest.mark.parametrize("on_controller", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_replica_is_added_and_that_is_cancelled(node: SimulatedNode, version: int, on_controller: bool) -> None:
    node.create_topic("t")
    beat(node, register(node))
    if on_controller:
        node.info = controller_connection()
    own = node.node.node_id
    assert code(reassign(node, [OTHER_ID, own], version=version)) == ErrorCode.NONE
    partition = node.node.image.topics_by_name["t"].partitions[0]
    assert (partition.replicas, partition.adding_replicas) == ((OTHER_ID, own), (OTHER_ID,))
    assert code(reassign(node, None, version=version)) == ErrorCode.NONE
    partition = node.node.image.topics_by_name["t"].partitions[0]
    assert (partition.replicas, partition.adding_replicas) == ((own,), ())
    assert code(reassign(node, None, version=version)) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_from_version_1_on_the_client_may_keep_the_replication_factor(node: SimulatedNode) -> None:
    node.create_topic("t")
    beat(node, register(node))
    response = reassign(node, [OTHER_ID, node.node.node_id], may_change_factor=False)
    assert not response.allow_replication_factor_change
    assert code(response) == ErrorCode.INVALID_REPLICATION_FACTOR


def test_reassigning_needs_alter_on_the_cluster(node: SimulatedNode) -> None:
    node.create_topic("t")
    deny(node, (AclOperation.ALTER, CLUSTER_NAME))
    assert reassign(node, [1]).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_controller_that_is_not_active_says_so(node: SimulatedNode) -> None:
    node.create_topic("t")
    lose_controller(node)
    node.info = controller_connection()
    assert reassign(node, [1]).error_code == ErrorCode.NOT_CONTROLLER
