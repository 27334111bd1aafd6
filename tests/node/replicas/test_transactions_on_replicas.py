"""Transactions whose records, markers and states are all replicated."""

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from quire.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from quire.protocol.records import Record, build_batch
from tests.node.replicas.replicated import TOPIC, Replicated

NAME = "mover"


def replicated(seed: int = 1) -> Replicated:
    return Replicated(seed=seed, transaction_state_log_replication_factor="3", transaction_state_log_min_isr="2")


class TransactionalProducer:
    """Speaks transaction protocol 1, one request after the other."""

    def __init__(self, nodes: Replicated) -> None:
        self.nodes = nodes
        nodes.until(lambda: self._find() is not None)
        coordinator = self._find()
        assert coordinator is not None
        self.coordinator = coordinator
        request = InitProducerIdRequest(transactional_id=NAME, transaction_timeout_ms=60_000)
        found = None
        while found is None or found.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            found = nodes.ask(self.coordinator, request, InitProducerIdResponse, version=4)
        assert found.error_code == ErrorCode.NONE
        self.id, self.epoch = found.producer_id, found.producer_epoch
        self.sequence = 0

    def _find(self) -> int | None:
        request = FindCoordinatorRequest(key=NAME, key_type=1)
        found = self.nodes.ask(1, request, FindCoordinatorResponse, version=2)
        return None if found.error_code else found.node_id

    def add(self) -> ErrorCode:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=NAME,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
        )
        added = self.nodes.ask(self.coordinator, request, AddPartitionsToTxnResponse, version=3)
        return ErrorCode(added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

    def write(self, value: bytes) -> ErrorCode:
        batch = build_batch(
            [Record(0, self.nodes.clock.now_ms(), None, value)],
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            transactional=True,
        )
        self.sequence += 1
        topic = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=bytes(batch))])
        request = ProduceRequest(transactional_id=NAME, acks=-1, timeout_ms=5_000, topic_data=[topic])
        answer = self.nodes.ask(self.nodes.leader_node(), request, ProduceResponse, version=9)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    def commit(self) -> ErrorCode:
        request = EndTxnRequest(transactional_id=NAME, producer_id=self.id, producer_epoch=self.epoch, committed=True)
        return ErrorCode(self.nodes.ask(self.coordinator, request, EndTxnResponse, version=3).error_code)


def test_the_next_transaction_begins_without_a_retry_of_the_client() -> None:
    nodes = replicated()
    producer = TransactionalProducer(nodes)
    for number in range(5):
        assert producer.add() == ErrorCode.NONE, f"transaction {number}"
        assert producer.write(b"%d" % number) == ErrorCode.NONE
        assert producer.commit() == ErrorCode.NONE
    nodes.until(nodes.is_whole)
    nodes.until(lambda: nodes.leader().partition.last_stable_offset == 10)
    assert nodes.content(1) == nodes.content(2) == nodes.content(3)


def test_a_transaction_survives_the_leader_of_its_partition() -> None:
    for seed in range(1, 10):
        nodes = replicated(seed)
        producer = TransactionalProducer(nodes)
        if nodes.leader_node() != producer.coordinator:
            break
    assert nodes.leader_node() != producer.coordinator
    assert (producer.add(), producer.write(b"a")) == (ErrorCode.NONE, ErrorCode.NONE)
    nodes.kill(nodes.leader_node())
    nodes.until(nodes.has_leader)
    assert nodes.leader().partition.last_stable_offset == 0
    assert producer.write(b"b") == ErrorCode.NONE
    assert producer.commit() == ErrorCode.NONE
    nodes.until(lambda: nodes.leader().partition.last_stable_offset == 3)
