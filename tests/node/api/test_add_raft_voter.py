"""AddRaftVoter: a controller becomes a voter when it has caught up with the log."""

import pytest

from quire.metadata.features import SUPPORTED
from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_raft_voter import AddRaftVoterResponse
from quire.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
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


def add(node: SimulatedNode) -> AddRaftVoterResponse:
    catch_up(node)
    request = add_request()
    request.ack_when_committed = False  # Two voters commit only together, and there is no second one here.
    return node.call(request, 1, AddRaftVoterResponse)


def test_a_controller_that_has_caught_up_becomes_a_voter(node: SimulatedNode) -> None:
    answer = add(node)
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    assert node.node.metadata.log.voters.ids == [1, NEW_ID]


def test_a_controller_whose_settings_name_it_alone_says_so_when_another_votes(
    node: SimulatedNode, caplog: pytest.LogCaptureFixture
) -> None:
    node.clock.run_for(10_000)
    assert "names this controller alone" not in caplog.text
    add(node)
    node.clock.run_until(lambda: "names this controller alone, but node 7 votes, too" in caplog.text)


def test_a_controller_that_has_not_caught_up_is_asked_to_try_again(node: SimulatedNode) -> None:
    answer = node.call(add_request(), 1, AddRaftVoterResponse)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "has not caught up" in (answer.error_message or "")
    assert node.node.metadata.log.voters.ids == [1]


def test_a_voter_is_not_added_twice(node: SimulatedNode) -> None:
    answer = node.call(add_request(voter_id=1), 0, AddRaftVoterResponse)
    assert answer.error_code == ErrorCode.DUPLICATE_VOTER


def test_a_node_that_is_only_a_broker_is_not_added(node: SimulatedNode) -> None:
    registration = BrokerRegistrationRequest(
        broker_id=NEW_ID,
        cluster_id=node.node.cluster_id,
        incarnation_id=b"i" * 16,
        listeners=[Listener(name="PLAINTEXT", host="new", port=9092, security_protocol=0)],
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED.items()
        ],
        log_dirs=[NEW_DIRECTORY],
    )
    catch_up(node)
    assert node.call(registration, 4, BrokerRegistrationResponse).error_code == ErrorCode.NONE
    answer = node.call(add_request(), 1, AddRaftVoterResponse)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "node 7 is only a broker and cannot vote" in (answer.error_message or "")
    assert node.node.metadata.log.voters.ids == [1]


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
