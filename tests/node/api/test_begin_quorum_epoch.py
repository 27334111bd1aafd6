"""BeginQuorumEpoch: a leader announces itself; this node answers with the epoch and leader that it knows."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from quire.raft.messages import BeginEpoch
from quire.raft.replicas import Endpoint
from quire.raft.wire import quorum_epoch
from tests.node.conftest import SimulatedNode


def announced(node: SimulatedNode, epoch: int, cluster_id: str | None = None) -> BeginQuorumEpochRequest:
    node.info.listener = "CONTROLLER"
    endpoints = [Endpoint("CONTROLLER", "node-2", 9093)]
    return quorum_epoch.begin_request(BeginEpoch(epoch, 2), cluster_id or node.node.cluster_id, endpoints)


def test_the_leader_of_an_old_epoch_gets_the_current_leader(node: SimulatedNode) -> None:
    answer = node.call(announced(node, 0), 1, BeginQuorumEpochResponse)
    (partition,) = answer.topics[0].partitions
    assert (partition.leader_id, partition.leader_epoch) == (1, 1)


@pytest.mark.parametrize("version", range(2))
def test_every_version_is_answered_with_what_it_can_carry(node: SimulatedNode, version: int) -> None:
    answer = node.call(announced(node, 0), version, BeginQuorumEpochResponse)
    assert answer.topics[0].partitions[0].leader_id == 1
    assert len(answer.node_endpoints) == version


def test_a_leader_with_an_invalid_node_id_is_refused(node: SimulatedNode) -> None:
    request = announced(node, 9)
    request.topics[0].partitions[0].leader_id = -1
    assert node.call(request, 1, BeginQuorumEpochResponse).error_code == ErrorCode.INVALID_REQUEST
    assert node.node.metadata.active is not None


def test_the_leader_of_a_higher_epoch_is_followed_at_the_address_that_it_names(node: SimulatedNode) -> None:
    answer = node.call(announced(node, 9), 1, BeginQuorumEpochResponse)
    (partition,) = answer.topics[0].partitions
    assert (partition.leader_id, partition.leader_epoch) == (2, 9)
    assert node.node.metadata.leader_endpoint() == (2, "node-2", 9093)
    assert node.node.metadata.active is None


def test_the_leader_of_another_cluster_is_refused(node: SimulatedNode) -> None:
    answer = node.call(announced(node, 9, "other"), 1, BeginQuorumEpochResponse)
    assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert node.node.metadata.active is not None
