"""AddRaftVoter: a controller becomes a voter when it has caught up with the log."""

import pytest

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_raft_voter import AddRaftVoterResponse
from quire.protocol.messages.fetch import FetchResponse
from quire.raft.messages import FetchRequest
from quire.raft.replicas import ReplicaKey
from quire.raft.wire import fetch
from tests.node.api.denying import deny
from tests.node.api.voters import NEW_DIRECTORY, NEW_ID, add_request
from tests.node.conftest import SimulatedNode


def catch_up(node: SimulatedNode) -> None:
    """The new controller fetches to the end of the log, as an observer."""
    node.info.listener, node.info.state = "CONTROLLER", None
    log = node.node.metadata.log
    message = FetchRequest(log.epoch, ReplicaKey(NEW_ID, NEW_DIRECTORY), log.next_offset, log.epoch)
    node.call(fetch.request(message, node.node.cluster_id), 18, FetchResponse)


def test_a_controller_that_has_caught_up_becomes_a_voter(node: SimulatedNode) -> None:
    catch_up(node)
    request = add_request()
    request.ack_when_committed = False  # Two voters commit only together, and there is no second one here.
    answer = node.call(request, 1, AddRaftVoterResponse)
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    assert node.node.metadata.log.voters.ids == [1, NEW_ID]


def test_a_controller_that_has_not_caught_up_is_asked_to_try_again(node: SimulatedNode) -> None:
    answer = node.call(add_request(), 1, AddRaftVoterResponse)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "has not caught up" in (answer.error_message or "")
    assert node.node.metadata.log.voters.ids == [1]


def test_a_voter_is_not_added_twice(node: SimulatedNode) -> None:
    answer = node.call(add_request(voter_id=1), 0, AddRaftVoterResponse)
    assert answer.error_code == ErrorCode.DUPLICATE_VOTER


@pytest.mark.parametrize("listener", ["PLAINTEXT", "CONTROLLER"])
def test_another_cluster_is_refused_on_both_listeners(node: SimulatedNode, listener: str) -> None:
    node.info.listener = listener
    answer = node.call(add_request("other"), 1, AddRaftVoterResponse)
    assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_voter_without_an_address_is_refused(node: SimulatedNode) -> None:
    request = add_request()
    request.listeners = []
    assert node.call(request, 1, AddRaftVoterResponse).error_code == ErrorCode.INVALID_REQUEST


def test_adding_voters_needs_alter_on_the_cluster(node: SimulatedNode) -> None:
    deny(node, (AclOperation.ALTER, CLUSTER_NAME))
    answer = node.call(add_request(), 1, AddRaftVoterResponse)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
