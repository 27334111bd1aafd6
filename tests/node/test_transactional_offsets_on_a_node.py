"""Offsets committed in transactions, through a whole node: none stays pending after the end of its transaction."""

import pytest

from quire.coordinators.runtime.shard import ShardState
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from quire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from quire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from quire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tests.node.conftest import SimulatedNode
from tests.node.transactional_producer import PROTOCOL_1, TOPIC, TransactionalProducer

GROUP = "g"


@pytest.fixture
def node() -> SimulatedNode:
    settings = {
        "transaction.state.log.num.partitions": "1",
        "offsets.topic.num.partitions": "1",
        "log.flush.interval.messages": "1",
    }
    node = SimulatedNode(settings=settings).start()
    node.create_topic(TOPIC, 1)
    node.call(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 6, FindCoordinatorResponse)
    node.clock.run_until(lambda: all(shard.state is ShardState.ACTIVE for shard in node.node.coordinators.groups))
    return node


def begun(node: SimulatedNode) -> TransactionalProducer:
    """A producer of protocol 1 in whose transaction the group is."""
    producer = TransactionalProducer(node, protocol=PROTOCOL_1).start()
    request = AddOffsetsToTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id=GROUP,
    )
    assert node.call(request, 4, AddOffsetsToTxnResponse).error_code == 0
    return producer


def in_transaction(producer: TransactionalProducer, offset: int) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(committed_offset=offset, committed_metadata="")
    return TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=GROUP,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
    )


def plain(offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(committed_offset=offset, committed_metadata="")
    return OffsetCommitRequest(group_id=GROUP, topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])])


def fetched(node: SimulatedNode) -> tuple[int, int]:
    """The group's stable offset, and an error if there is none."""
    group = OffsetFetchRequestGroup(
        group_id=GROUP, topics=[OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
    )
    answer = node.call(OffsetFetchRequest(groups=[group], require_stable=True), 8, OffsetFetchResponse)
    partition = answer.groups[0].topics[0].partitions[0]
    return partition.committed_offset, partition.error_code


def test_an_offset_counts_when_its_transaction_is_committed(node: SimulatedNode) -> None:
    producer = begun(node)
    assert node.call(in_transaction(producer, 5), 3, TxnOffsetCommitResponse).topics[0].partitions[0].error_code == 0
    assert fetched(node) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert producer.end(commit=True) == 0
    node.clock.run_for(1_000)
    assert fetched(node) == (5, 0)


def test_a_commit_that_comes_behind_the_end_of_its_transaction_stays_out(node: SimulatedNode) -> None:
    """The marker waits for an earlier commit, so the log does not show yet that the transaction has ended."""
    producer = begun(node)
    assert node.call(in_transaction(producer, 5), 3, TxnOffsetCommitResponse).topics[0].partitions[0].error_code == 0
    ended = node.send(producer.end_request(commit=True), 4)
    log = node.node.partitions.leader("__consumer_offsets", None, 0).log
    late = [node.send(plain(1), 8)]
    while not ended.done:
        node.clock.step()
        if len(late) < 40:
            late += [node.send(plain(1), 8), node.send(in_transaction(producer, 6), 3)]
    node.clock.run_until(lambda: all(answer.done for answer in late))
    node.clock.run_for(1_000)
    assert log.producer_state.first_open_transaction_offset is None
    assert fetched(node)[1] == 0
