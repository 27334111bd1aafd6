"""Fetches with the id of a broker, on a listener that clients use too: refused with Kafka's errors, one log line
each.
"""

import logging

import pytest

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from quire.protocol.messages.produce import ProduceResponse
from quire.replication.members import Members
from tests.node.api.denying import deny
from tests.node.api.other_nodes import OTHER_ID, beat, register
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request

STRANGER = 9


@pytest.fixture
def leader(node: SimulatedNode, caplog: pytest.LogCaptureFixture) -> SimulatedNode:
    """Leads partition 0 of topic t, which has a record."""
    node.create_topic("t")
    node.call(produce_request("t"), 9, ProduceResponse)
    caplog.set_level(logging.INFO, "quire.requests")
    return node


def fetched(
    node: SimulatedNode,
    replica_id: int,
    *,
    leader_epoch: int = 0,
    broker_epoch: int = -1,
    topic_id: bytes | None = None,
    index: int = 0,
    offset: int = 0,
) -> ErrorCode:
    wanted = FetchPartition(
        partition=index, fetch_offset=offset, partition_max_bytes=1000, current_leader_epoch=leader_epoch
    )
    request = FetchRequest(
        replica_state=ReplicaState(replica_id=replica_id, replica_epoch=broker_epoch),
        max_bytes=1000,
        topics=[FetchTopic(topic_id=topic_id or node.node.image.topics_by_name["t"].topic_id, partitions=[wanted])],
    )
    (topic,) = node.call(request, 17, FetchResponse).responses
    (part,) = topic.partitions
    assert not part.error_code or (not part.records and part.high_watermark == -1)
    return ErrorCode(part.error_code)


def add_replica(node: SimulatedNode, broker_id: int) -> None:
    """As in a cluster with a controller of Apache Kafka."""
    node.node.partitions.leader("t", None, 0).followers.change_members(Members((1, broker_id), (1,), 1))


@pytest.mark.parametrize("replica_id", [STRANGER, 1])
def test_a_broker_that_is_no_replica_or_the_leader_itself(
    leader: SimulatedNode, caplog: pytest.LogCaptureFixture, replica_id: int
) -> None:
    assert fetched(leader, replica_id) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert f"refused Fetch from node {replica_id} at client:1 with UNKNOWN_LEADER_EPOCH" in caplog.text
    assert "is not a replica of partition 0" in caplog.text
    assert fetched(leader, replica_id, leader_epoch=-1) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_topic_id_that_is_of_no_topic(leader: SimulatedNode, caplog: pytest.LogCaptureFixture) -> None:
    assert fetched(leader, STRANGER, topic_id=b"x" * 16) == ErrorCode.UNKNOWN_TOPIC_ID
    assert "there is no topic with this id" in caplog.text


def test_a_partition_that_does_not_exist(leader: SimulatedNode) -> None:
    assert fetched(leader, STRANGER, index=7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_leader_epoch_that_does_not_exist_yet(leader: SimulatedNode, caplog: pytest.LogCaptureFixture) -> None:
    add_replica(leader, STRANGER)
    assert fetched(leader, STRANGER, leader_epoch=5) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert "t-0 is led in epoch 0, not 5" in caplog.text


def test_a_replica_of_an_old_registration(leader: SimulatedNode, caplog: pytest.LogCaptureFixture) -> None:
    epoch = register(leader)
    beat(leader, epoch)
    add_replica(leader, OTHER_ID)
    assert fetched(leader, OTHER_ID, broker_epoch=epoch - 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert f"its broker epoch is {epoch - 1}, and broker 2 has registered with {epoch}" in caplog.text
    assert fetched(leader, OTHER_ID, broker_epoch=epoch) == ErrorCode.NONE


@pytest.mark.parametrize("claimed", [2**62, -1])
def test_a_claim_to_be_a_broker_commits_nothing(leader: SimulatedNode, claimed: int) -> None:
    """The replica is in sync, so records count as acknowledged if it is believed to have them."""
    beat(leader, register(leader))
    role = leader.node.partitions.leader("t", None, 0)
    role.followers.change_members(Members((1, OTHER_ID), (1, OTHER_ID), 1))
    leader.send(produce_request("t"), 9)
    committed = role.partition.high_watermark
    assert fetched(leader, OTHER_ID, broker_epoch=claimed, offset=2) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert role.partition.high_watermark == committed == 1


@pytest.mark.parametrize("offset", [3, 2**62, -1])
def test_a_follower_that_claims_what_is_not_in_the_log_commits_nothing(
    leader: SimulatedNode, caplog: pytest.LogCaptureFixture, offset: int
) -> None:
    """Its registration is right, and it is in sync."""
    epoch = register(leader)
    beat(leader, epoch)
    role = leader.node.partitions.leader("t", None, 0)
    role.followers.change_members(Members((1, OTHER_ID), (1, OTHER_ID), 1))
    leader.send(produce_request("t"), 9)
    assert fetched(leader, OTHER_ID, broker_epoch=epoch, offset=offset) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (role.partition.high_watermark, role.log.end_offset) == (1, 2)
    assert f"t-0 holds offsets 0 to 2, not {offset}" in caplog.text
    assert len(caplog.messages) == 1
    assert fetched(leader, OTHER_ID, broker_epoch=epoch, offset=2) == ErrorCode.NONE
    assert role.partition.high_watermark == 2


def test_a_follower_that_no_broker_is_registered_as(leader: SimulatedNode) -> None:
    add_replica(leader, STRANGER)
    assert fetched(leader, STRANGER, broker_epoch=5) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_client_that_may_not_act_as_a_node(leader: SimulatedNode) -> None:
    deny(leader, (AclOperation.CLUSTER_ACTION, CLUSTER_NAME))
    assert fetched(leader, STRANGER) == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_broker_that_keeps_sending_does_not_fill_the_log(
    leader: SimulatedNode, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(50):
        fetched(leader, STRANGER)
    assert len(caplog.messages) == 1
