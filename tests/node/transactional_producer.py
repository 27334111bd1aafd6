"""A transactional producer that a test controls, request by request, against a simulated node."""

from quire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from quire.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.node.conftest import SimulatedNode
from tests.storage.batches import batch

PROTOCOL_1 = 1
PROTOCOL_2 = 2

TOPIC = "t"


class TransactionalProducer:
    def __init__(self, node: SimulatedNode, transactional_id: str = "mover", protocol: int = PROTOCOL_2) -> None:
        self.node = node
        self.transactional_id = transactional_id
        self.protocol = protocol
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[int, int] = {}

    def start(self) -> "TransactionalProducer":
        found = self.node.call(
            FindCoordinatorRequest(key_type=1, coordinator_keys=[self.transactional_id]), 6, FindCoordinatorResponse
        )
        assert found.coordinators[0].error_code == 0, found
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=60_000)
        answer = self.node.call(request, 5, InitProducerIdResponse)
        assert answer.error_code == 0, answer
        self._goes_on_as(answer.producer_id, answer.producer_epoch)
        return self

    def add_partitions(self, *indexes: int, version: int = 3) -> list[int]:
        """Adds the partitions, like a producer of protocol 1 before it writes; returns the error of each."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=list(indexes))],
        )
        answer = self.node.call(request, version, AddPartitionsToTxnResponse)
        return [
            result.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for result in topic.results_by_partition
        ]

    def request(self, *indexes: int, epoch: int | None = None, sequence: int | None = None) -> ProduceRequest:
        used = self.epoch if epoch is None else epoch
        parts = []
        for index in indexes or (0,):
            first = self.sequences.get(index, 0) if sequence is None else sequence
            records = batch(
                b"value", producer_id=self.producer_id, producer_epoch=used, sequence=first, transactional=True
            )
            parts.append(PartitionProduceData(index=index, records=records))
        return ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=TOPIC, partition_data=parts)],
        )

    @property
    def produce_version(self) -> int:
        return 12 if self.protocol == PROTOCOL_2 else 11

    def produce(self, *indexes: int, epoch: int | None = None, sequence: int | None = None) -> list[int]:
        """The error of each partition."""
        request = self.request(*indexes, epoch=epoch, sequence=sequence)
        answer = self.node.call(request, self.produce_version, ProduceResponse)
        errors = [part.error_code for part in answer.responses[0].partition_responses]
        for index, error in zip(indexes or (0,), errors, strict=True):
            if error == 0 and sequence is None:
                self.sequences[index] = self.sequences.get(index, 0) + 1
        return errors

    def end_request(self, *, commit: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )

    def end(self, *, commit: bool) -> int:
        version = 5 if self.protocol == PROTOCOL_2 else 4
        answer = self.node.call(self.end_request(commit=commit), version, EndTxnResponse)
        if answer.error_code == 0 and self.protocol == PROTOCOL_2:
            self._goes_on_as(answer.producer_id, answer.producer_epoch)
        return answer.error_code

    def _goes_on_as(self, producer_id: int, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.sequences.clear()
