"""Transactions through a whole node: what partitions accept, what ends them, and what read_committed sees."""

import pytest

from quire.coordinators.runtime.shard import ShardState
from quire.protocol.errors import ErrorCode
from quire.protocol.internal_topics import TRANSACTION_STATE
from quire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from quire.protocol.messages.produce import ProduceResponse
from quire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.node.conftest import SimulatedNode
from tests.node.open_transactions import BOTH, MarkerlessChannel, begun, committed, transactional_node
from tests.node.transactional_producer import PROTOCOL_1, PROTOCOL_2, TOPIC, TransactionalProducer


@pytest.fixture
def node() -> SimulatedNode:
    return transactional_node()


@BOTH
def test_records_are_seen_when_their_transaction_is_committed(node: SimulatedNode, protocol: int) -> None:
    producer = begun(node, protocol, 0, 1)
    assert producer.produce(0, 1) == [0, 0]
    assert producer.produce(0) == [0]
    assert committed(node) == ([], 0)
    assert producer.end(commit=True) == 0
    assert committed(node) == ([0, 1], 3)
    assert committed(node, 1) == ([0], 2)


@BOTH
def test_records_of_an_aborted_transaction_are_never_seen(node: SimulatedNode, protocol: int) -> None:
    producer = begun(node, protocol, 0)
    producer.produce(0)
    assert producer.end(commit=False) == 0
    assert committed(node) == ([], 2)


@BOTH
def test_one_transaction_after_the_other(node: SimulatedNode, protocol: int) -> None:
    producer = begun(node, protocol, 0)
    for number in range(5):
        if protocol == PROTOCOL_1 and number:
            producer.add_partitions(0)
        assert producer.produce(0) == [0]
        assert producer.end(commit=True) == 0
    assert committed(node) == ([0, 2, 4, 6, 8], 10)


def test_a_newer_producer_fences_the_older_one(node: SimulatedNode) -> None:
    old = begun(node, PROTOCOL_2)
    old.produce(0)
    new = TransactionalProducer(node)
    with pytest.raises(AssertionError, match="error_code=51"):  # CONCURRENT_TRANSACTIONS
        new.start()  # The transaction of the previous producer has to be ended first.
    new.start()
    assert old.produce(0) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert old.end(commit=True) == ErrorCode.PRODUCER_FENCED
    assert new.produce(0) == [0]
    assert new.end(commit=True) == 0
    assert committed(node) == ([2], 4)


def test_a_transaction_without_acks_all_is_refused(node: SimulatedNode) -> None:
    producer = begun(node, PROTOCOL_2)
    request = producer.request(0)
    request.acks = 1
    answer = node.call(request, producer.produce_version, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_a_transactional_batch_without_a_transactional_id_is_refused(node: SimulatedNode) -> None:
    producer = begun(node, PROTOCOL_2)
    request = producer.request(0)
    request.transactional_id = None
    answer = node.call(request, producer.produce_version, ProduceResponse)
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert answer.responses[0].partition_responses[0].error_code == refused


def test_sequence_numbers_of_an_ended_transaction_are_refused_with_the_start_of_the_log(node: SimulatedNode) -> None:
    producer = begun(node, PROTOCOL_1, 0)
    assert producer.produce(0) == [0]
    assert producer.end(commit=False) == 0
    producer.sequences.clear()
    assert producer.add_partitions(0) == [0]
    answer = node.call(producer.request(0), producer.produce_version, ProduceResponse)
    refused = answer.responses[0].partition_responses[0]
    assert refused.error_code == ErrorCode.UNKNOWN_PRODUCER_ID
    assert refused.log_start_offset == 0


def test_with_protocol_2_an_unknown_producer_begins_with_sequence_zero(node: SimulatedNode) -> None:
    producer = begun(node, PROTOCOL_2)
    assert producer.produce(0, sequence=3) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]


def write_marker(node: SimulatedNode, producer_id: int, epoch: int, *, coordinator_epoch: int, version: int) -> int:
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=True,
        coordinator_epoch=coordinator_epoch,
        topics=[WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])],
        transaction_version=version,
    )
    answer = node.call(WriteTxnMarkersRequest(markers=[marker]), 2, WriteTxnMarkersResponse)
    return answer.markers[0].topics[0].partitions[0].error_code


def elect(node: SimulatedNode, leader_epoch: int) -> None:
    """According to the metadata, the coordinator has changed this many times."""
    topic = node.node.image.topic(TRANSACTION_STATE)
    assert topic is not None
    for index, partition in topic.partitions.items():
        topic.partitions[index] = partition._replace(leader_epoch=leader_epoch)


def test_a_marker_of_a_coordinator_that_does_not_exist_yet_does_not_block_the_real_one(
    node: SimulatedNode,
) -> None:
    producer = begun(node, PROTOCOL_1, 0)
    producer.produce(0)
    code = write_marker(node, producer.producer_id, producer.epoch, coordinator_epoch=2**31 - 1, version=1)
    assert code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    producer.end(commit=True)
    assert committed(node) == ([0], 2)


def test_a_repeated_marker_of_protocol_2_is_not_written_again(node: SimulatedNode) -> None:
    producer = begun(node, PROTOCOL_2)
    producer.produce(0)
    epoch = producer.epoch
    producer.end(commit=True)
    assert write_marker(node, producer.producer_id, epoch + 1, coordinator_epoch=0, version=2) == 0
    assert committed(node) == ([0], 2)


def test_a_late_marker_of_protocol_2_does_not_end_the_transaction_after_its_own(node: SimulatedNode) -> None:
    producer = begun(node, PROTOCOL_2)
    producer.produce(0)
    producer.end(commit=True)
    producer.produce(0)
    code = write_marker(node, producer.producer_id, producer.epoch, coordinator_epoch=0, version=2)
    assert code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert committed(node) == ([0], 2)


def test_a_marker_of_a_deposed_coordinator_is_refused(node: SimulatedNode) -> None:
    producer = begun(node, PROTOCOL_1, 0)
    producer.produce(0)
    elect(node, leader_epoch=9)
    assert write_marker(node, producer.producer_id, producer.epoch, coordinator_epoch=9, version=1) == 0
    code = write_marker(node, producer.producer_id, producer.epoch, coordinator_epoch=8, version=1)
    assert code == ErrorCode.TRANSACTION_COORDINATOR_FENCED


@BOTH
def test_no_marker_gets_between_the_records_of_a_coordinator(node: SimulatedNode, protocol: int) -> None:
    producer = TransactionalProducer(node, protocol=protocol).start()
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[AddPartitionsToTxnTopic(name=TRANSACTION_STATE, partitions=[0, 1])],
    )
    node.call(AddPartitionsToTxnRequest(transactions=[transaction]), 4, AddPartitionsToTxnResponse)
    assert producer.end(commit=True) == 0
    assert all(shard.state is ShardState.ACTIVE for shard in node.node.coordinators.transactions)
    node.clock.run_for(1_000)
    assert begun(node, protocol, 0).produce(0) == [0]


@BOTH
def test_a_restart_in_the_middle_of_a_transaction_loses_nothing(node: SimulatedNode, protocol: int) -> None:
    producer = begun(node, protocol, 0, 1)
    producer.produce(0)
    again = SimulatedNode(node.stop(), settings={"transaction.state.log.num.partitions": "2"}).start()
    again.clock.run_until(
        lambda: all(shard.state is ShardState.ACTIVE for shard in again.node.coordinators.transactions)
    )
    producer.node = again
    assert producer.produce(0, 1) == [0, 0]
    assert producer.end(commit=True) == 0
    assert committed(again) == ([0, 1], 3)
    assert committed(again, 1) == ([0], 2)


@BOTH
def test_after_a_clean_stop_no_marker_is_written_again(node: SimulatedNode, protocol: int) -> None:
    producer = begun(node, protocol, 0)
    producer.produce(0)
    assert producer.end(commit=True) == 0
    again = SimulatedNode(node.stop(), settings={"transaction.state.log.num.partitions": "2"}).start()
    again.clock.run_until(
        lambda: all(shard.state is ShardState.ACTIVE for shard in again.node.coordinators.transactions)
    )
    again.clock.run_for(1_000)
    assert again.node.partitions.leader(TOPIC, None, 0).log.end_offset == 2


@BOTH
def test_a_kill_right_after_the_end_of_a_transaction_changes_nothing_for_readers(
    node: SimulatedNode, protocol: int
) -> None:
    producer = begun(node, protocol, 0)
    producer.produce(0)
    assert producer.end(commit=True) == 0
    again = SimulatedNode(node.disk.kill(), settings={"transaction.state.log.num.partitions": "2"}).start()
    again.clock.run_until(
        lambda: all(shard.state is ShardState.ACTIVE for shard in again.node.coordinators.transactions)
    )
    again.clock.run_for(1_000)
    assert committed(again)[0] == [0]
    producer.node = again
    if protocol == PROTOCOL_1:
        assert producer.add_partitions(0) == [0]
    assert producer.produce(0) == [0]
    assert producer.end(commit=True) == 0
    assert len(committed(again)[0]) == 2


def test_transactions_that_a_start_finds_unfinished_are_ended_in_a_new_leader_epoch(node: SimulatedNode) -> None:
    """After a power loss, offsets may be used again: a reader could not distinguish a marker there from records it has
    read."""
    channel = node.node.channel = MarkerlessChannel(node.node.channel)
    producer = begun(node, PROTOCOL_2)
    producer.produce(0)
    assert producer.end(commit=True) == 0
    assert channel.held
    before = node.node.partitions.leader(TOPIC, None, 0).partition.leader_epoch
    again = SimulatedNode(node.disk.kill(), settings={"transaction.state.log.num.partitions": "2"}).start()
    again.clock.run_until(lambda: committed(again) == ([0], 2))
    log = again.node.partitions.leader(TOPIC, None, 0).log
    assert log.epochs.epoch_of(0) == before
    assert log.epochs.epoch_of(1) > before


@BOTH
def test_an_abandoned_transaction_is_aborted_in_time(node: SimulatedNode, protocol: int) -> None:
    producer = begun(node, protocol, 0)
    producer.produce(0)
    node.clock.run_for(75_000)
    assert committed(node) == ([], 2)
    assert producer.end(commit=True) == ErrorCode.PRODUCER_FENCED
