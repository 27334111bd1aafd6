"""WriteTxnMarkers: markers by partition. See also `test_transactions_on_a_node`."""

import pytest

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from quire.replication.members import Members
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode
from tests.node.transactional_producer import TransactionalProducer


@pytest.fixture
def producer(coordinator: SimulatedNode) -> TransactionalProducer:
    """With an open transaction in partition 0."""
    producer = TransactionalProducer(coordinator).start()
    assert producer.produce(0) == [ErrorCode.NONE]
    return producer


def write(producer: TransactionalProducer, topic: str, *indexes: int, coordinator_epoch: int = 0) -> list[int]:
    """The error of each partition; the marker aborts."""
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=list(indexes))],
        coordinator_epoch=coordinator_epoch,
    )
    (answer,) = producer.node.call(WriteTxnMarkersRequest(markers=[marker]), 1, WriteTxnMarkersResponse).markers
    assert answer.producer_id == producer.producer_id
    return [partition.error_code for partition in answer.topics[0].partitions]


def test_a_transaction_ends_in_the_partitions_that_exist(producer: TransactionalProducer) -> None:
    partition = producer.node.node.partitions.leader("t", None, 0).partition
    assert partition.last_stable_offset == 0
    assert write(producer, "t", 7, 0) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
    assert partition.last_stable_offset == 2


@pytest.mark.parametrize("topic", ["t", "__consumer_offsets"])
def test_a_repeated_marker_is_confirmed_when_the_first_one_is_committed(coordinator: SimulatedNode, topic: str) -> None:
    """The response to the first request may have been lost."""
    leader = coordinator.node.partitions.leader(topic, None, 0)
    leader.followers.change_members(Members((1, 2), (1, 2), 1))
    begins_at = leader.log.end_offset
    marker = WritableTxnMarker(
        producer_id=7,
        producer_epoch=1,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
        coordinator_epoch=0,
        transaction_version=2,
    )
    request = WriteTxnMarkersRequest(markers=[marker])
    answers = [coordinator.send(request, 2)]
    coordinator.clock.run_until(lambda: leader.log.end_offset > begins_at)
    answers.append(coordinator.send(request, 2))
    coordinator.clock.run_for(1_000)
    assert leader.log.end_offset == begins_at + 1, "the marker is written once"
    assert [answer.done for answer in answers] == [False, False]
    leader.followers.fetched(2, -1, leader.log.end_offset, 0)
    coordinator.clock.run_until(lambda: all(answer.done for answer in answers))
    assert answers[0].value == answers[1].value
    repeated = coordinator.call(request, 2, WriteTxnMarkersResponse)
    assert repeated.markers[0].topics[0].partitions[0].error_code == ErrorCode.NONE


def test_a_coordinator_of_an_epoch_that_does_not_exist_yet_has_to_retry(producer: TransactionalProducer) -> None:
    assert write(producer, "t", 0, coordinator_epoch=99) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_there_are_no_transactions_in_the_transaction_log(producer: TransactionalProducer) -> None:
    assert write(producer, "__transaction_state", 0) == [ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT]


def test_only_brokers_and_administrators_may_write_markers(producer: TransactionalProducer) -> None:
    deny(producer.node, (AclOperation.CLUSTER_ACTION, CLUSTER_NAME), (AclOperation.ALTER, CLUSTER_NAME))
    assert write(producer, "t", 0, 1) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
    deny(producer.node, (AclOperation.CLUSTER_ACTION, CLUSTER_NAME))
    assert write(producer, "t", 0) == [ErrorCode.NONE]
