"""DescribeProducers: what a partition remembers of each producer."""

import pytest

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
)
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode
from tests.node.transactional_producer import TransactionalProducer


def describe(node: SimulatedNode, topic: str, *indexes: int) -> list[PartitionResponse]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(indexes))])
    (answer,) = node.call(request, 0, DescribeProducersResponse).topics
    assert answer.name == topic
    return answer.partitions


def test_a_producer_is_described_where_it_has_written(coordinator: SimulatedNode) -> None:
    producer = TransactionalProducer(coordinator).start()
    assert producer.produce(0) == [ErrorCode.NONE]
    assert producer.produce(0) == [ErrorCode.NONE]
    written, untouched = describe(coordinator, "t", 0, 1)
    (state,) = written.active_producers
    assert (state.producer_id, state.producer_epoch) == (producer.producer_id, producer.epoch)
    assert (state.last_sequence, state.current_txn_start_offset) == (1, 0)
    assert untouched.active_producers == []


def test_a_transaction_that_has_ended_has_no_start_offset(coordinator: SimulatedNode) -> None:
    producer = TransactionalProducer(coordinator).start()
    producer.produce(0)
    assert producer.end(commit=True) == ErrorCode.NONE
    coordinator.clock.run_for(1000)
    (state,) = describe(coordinator, "t", 0)[0].active_producers
    assert state.current_txn_start_offset == -1


@pytest.mark.parametrize(("topic", "index"), [("t", 7), ("unknown", 0)])
def test_an_unknown_partition_is_refused_by_itself(coordinator: SimulatedNode, topic: str, index: int) -> None:
    (partition,) = describe(coordinator, topic, index)
    assert (partition.partition_index, partition.error_code) == (index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_topic_that_may_not_be_read_is_refused(coordinator: SimulatedNode) -> None:
    deny(coordinator, (AclOperation.READ, "t"))
    (partition,) = describe(coordinator, "t", 0)
    assert partition.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert partition.error_message == "reading t is not allowed"
