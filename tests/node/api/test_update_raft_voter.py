"""UpdateRaftVoter: a voter's new address is in the voter set."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.update_raft_voter import UpdateRaftVoterResponse
from tests.node.api.voters import update_request
from tests.node.conftest import SimulatedNode


def test_the_voter_set_has_the_new_address(node: SimulatedNode) -> None:
    node.info.listener = "CONTROLLER"
    answer = node.call(update_request(node, 1), 0, UpdateRaftVoterResponse)
    assert (answer.error_code, answer.current_leader.leader_id) == (ErrorCode.NONE, 1)
    voter = node.node.metadata.log.voters.get(1)
    assert voter is not None and [(each.host, each.port) for each in voter.endpoints] == [("moved", 1234)]


@pytest.mark.parametrize(("epoch", "error"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (9, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_another_epoch_is_refused(node: SimulatedNode, epoch: int, error: ErrorCode) -> None:
    node.info.listener = "CONTROLLER"
    answer = node.call(update_request(node, epoch), 0, UpdateRaftVoterResponse)
    assert (answer.error_code, answer.current_leader.leader_epoch) == (error, 1)


def test_another_cluster_is_refused(node: SimulatedNode) -> None:
    node.info.listener = "CONTROLLER"
    request = update_request(node, 1)
    request.cluster_id = "other"
    assert node.call(request, 0, UpdateRaftVoterResponse).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
