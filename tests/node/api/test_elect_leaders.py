"""ElectLeaders over both listeners; the transcripts of tests/controller have the elections."""

import pytest

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    TopicPartitions,
)
from tests.node.api.denying import deny
from tests.node.api.other_nodes import controller_connection, lose_controller
from tests.node.conftest import SimulatedNode

VERSIONS = (0, 1, 2)


def elect(node: SimulatedNode, *partitions: int, version: int = 2, election_type: int = 0) -> ElectLeadersResponse:
    request = ElectLeadersRequest(
        election_type=election_type,
        topic_partitions=[TopicPartitions(topic="t", partitions=list(partitions))] if partitions else None,
        timeout_ms=1000,
    )
    return node.call(request, version, ElectLeadersResponse)


def results(response: ElectLeadersResponse) -> dict[int, PartitionResult]:
    return {each.partition_id: each for topic in response.replica_election_results for each in topic.partition_result}


@pytest.mark.parametrize("on_controller", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_each_partition_has_its_own_result(node: SimulatedNode, version: int, on_controller: bool) -> None:
    node.create_topic("t")
    if on_controller:
        node.info = controller_connection()
    found = results(elect(node, 0, 1, version=version))
    assert {index: each.error_code for index, each in found.items()} == {
        0: ErrorCode.ELECTION_NOT_NEEDED,
        1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert found[1].error_message == "there is no partition 1 of t"


@pytest.mark.parametrize("version", VERSIONS)
def test_without_a_list_only_elections_are_in_the_response(node: SimulatedNode, version: int) -> None:
    node.create_topic("t", partitions=3)
    response = elect(node, version=version)
    assert (response.error_code, results(response)) == (ErrorCode.NONE, {})


def test_an_unknown_type_of_election_is_refused(node: SimulatedNode) -> None:
    node.create_topic("t")
    response = elect(node, 0, election_type=2)
    assert (response.error_code, results(response)[0].error_code) == (ErrorCode.INVALID_REQUEST,) * 2
    assert results(response)[0].error_message == "there is no election type 2: use 0 (preferred) or 1 (unclean)"


@pytest.mark.parametrize("version", VERSIONS)
def test_electing_leaders_needs_alter_on_the_cluster(node: SimulatedNode, version: int) -> None:
    node.create_topic("t")
    deny(node, (AclOperation.ALTER, CLUSTER_NAME))
    response = elect(node, 0, version=version)
    assert results(response)[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert response.error_code == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED if version > 0 else ErrorCode.NONE)


def test_a_controller_that_is_not_active_says_so(node: SimulatedNode) -> None:
    lose_controller(node)
    node.info = controller_connection()
    assert elect(node, 0).error_code == ErrorCode.NOT_CONTROLLER
