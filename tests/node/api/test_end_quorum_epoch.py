"""EndQuorumEpoch: a leader resigns; this node answers with the epoch and leader that it knows."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from quire.raft.messages import EndEpoch
from quire.raft.wire import quorum_epoch
from tests.node.conftest import SimulatedNode


def resigned(node: SimulatedNode, epoch: int, cluster_id: str | None = None) -> EndQuorumEpochRequest:
    node.info.listener = "CONTROLLER"
    return quorum_epoch.end_request(EndEpoch(epoch, 2, ()), cluster_id or node.node.cluster_id, [])


def test_the_leader_of_an_old_epoch_changes_nothing(node: SimulatedNode) -> None:
    answer = node.call(resigned(node, 0), 1, EndQuorumEpochResponse)
    (partition,) = answer.topics[0].partitions
    assert (partition.leader_id, partition.leader_epoch) == (1, 1)
    assert node.node.metadata.active is not None


@pytest.mark.parametrize("version", range(2))
def test_every_version_is_answered_with_what_it_can_carry(node: SimulatedNode, version: int) -> None:
    answer = node.call(resigned(node, 0), version, EndQuorumEpochResponse)
    assert answer.topics[0].partitions[0].leader_id == 1
    assert len(answer.node_endpoints) == version


def test_the_leader_of_another_cluster_is_refused(node: SimulatedNode) -> None:
    answer = node.call(resigned(node, 9, "other"), 1, EndQuorumEpochResponse)
    assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert node.node.metadata.active is not None
