"""RemoveRaftVoter: by node id and directory id, and never the last one."""

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from tests.node.api.denying import deny
from tests.node.api.voters import remove_request
from tests.node.conftest import SimulatedNode


def test_the_only_voter_stays(node: SimulatedNode) -> None:
    answer = node.call(remove_request(node), 0, RemoveRaftVoterResponse)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "the only voter" in (answer.error_message or "")


def test_a_voter_with_another_directory_is_not_found(node: SimulatedNode) -> None:
    answer = node.call(remove_request(node, b"x" * 16), 0, RemoveRaftVoterResponse)
    assert answer.error_code == ErrorCode.VOTER_NOT_FOUND


def test_another_cluster_is_refused(node: SimulatedNode) -> None:
    request = RemoveRaftVoterRequest(cluster_id="other", voter_id=1, voter_directory_id=b"x" * 16)
    answer = node.call(request, 0, RemoveRaftVoterResponse)
    assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_removing_voters_needs_alter_on_the_cluster(node: SimulatedNode) -> None:
    deny(node, (AclOperation.ALTER, CLUSTER_NAME))
    answer = node.call(remove_request(node), 0, RemoveRaftVoterResponse)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
