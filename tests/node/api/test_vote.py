"""Vote: answered on controller listeners, for candidates of this cluster."""

import pytest

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.vote import VoteRequest, VoteResponse
from quire.raft import messages
from quire.raft.log_summary import LogPosition
from quire.raft.replicas import ReplicaKey
from quire.raft.wire import vote
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode


def asked(node: SimulatedNode, cluster_id: str | None = None, epoch: int = 9) -> VoteRequest:
    node.info.listener = "CONTROLLER"
    message = messages.VoteRequest(epoch, ReplicaKey(2, b"c" * 16), LogPosition(0, 0))
    return vote.request(message, cluster_id or node.node.cluster_id)


def test_a_candidate_with_a_shorter_log_is_refused_and_its_higher_epoch_is_taken_up(node: SimulatedNode) -> None:
    """The only voter leads again at once, in an epoch that no candidate had."""
    answer = node.call(asked(node), 2, VoteResponse)
    (partition,) = answer.topics[0].partitions
    assert (answer.error_code, partition.vote_granted) == (ErrorCode.NONE, False)
    assert (partition.leader_id, partition.leader_epoch) == (1, 10)


def test_a_candidate_of_an_old_epoch_gets_the_leader(node: SimulatedNode) -> None:
    answer = node.call(asked(node, epoch=1), 2, VoteResponse)
    (partition,) = answer.topics[0].partitions
    assert (partition.vote_granted, partition.leader_id, partition.leader_epoch) == (False, 1, 1)
    assert [each.node_id for each in answer.node_endpoints] == [1]


@pytest.mark.parametrize("version", range(3))
def test_every_version_is_answered_with_what_it_can_carry(node: SimulatedNode, version: int) -> None:
    answer = node.call(asked(node, epoch=1), version, VoteResponse)
    assert answer.topics[0].partitions[0].leader_id == 1
    assert len(answer.node_endpoints) == (1 if version >= 1 else 0)


def test_a_candidate_with_an_invalid_node_id_is_refused(node: SimulatedNode) -> None:
    request = asked(node)
    request.topics[0].partitions[0].replica_id = -1
    assert node.call(request, 2, VoteResponse).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(3))
def test_a_candidate_of_another_cluster_is_refused(node: SimulatedNode, version: int) -> None:
    answer = node.call(asked(node, "other"), version, VoteResponse)
    assert (answer.error_code, answer.topics) == (ErrorCode.INCONSISTENT_CLUSTER_ID, [])


def test_only_nodes_of_the_cluster_may_ask_for_votes(node: SimulatedNode) -> None:
    deny(node, (AclOperation.CLUSTER_ACTION, CLUSTER_NAME))
    answer = node.call(asked(node), 2, VoteResponse)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
