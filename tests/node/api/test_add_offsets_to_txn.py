"""AddOffsetsToTxn: the group's partition becomes one of the transaction's."""

import pytest

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from quire.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode
from tests.node.transactional_producer import PROTOCOL_1, TransactionalProducer

GROUP = "readers"


def add_offsets(producer: TransactionalProducer) -> int:
    request = AddOffsetsToTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id=GROUP,
    )
    return producer.node.call(request, 4, AddOffsetsToTxnResponse).error_code


def test_the_groups_partition_is_added_to_the_transaction(coordinator: SimulatedNode) -> None:
    producer = TransactionalProducer(coordinator, protocol=PROTOCOL_1).start()
    assert add_offsets(producer) == ErrorCode.NONE
    request = DescribeTransactionsRequest(transactional_ids=[producer.transactional_id])
    (state,) = coordinator.call(request, 0, DescribeTransactionsResponse).transaction_states
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [("__consumer_offsets", [0])]


def test_the_first_request_has_the_offsets_topic_created_and_the_client_retries(node: SimulatedNode) -> None:
    producer = TransactionalProducer(node, protocol=PROTOCOL_1).start()
    assert node.node.image.topic("__consumer_offsets") is None
    assert add_offsets(producer) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert node.node.image.topic("__consumer_offsets") is not None
    assert add_offsets(producer) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("operation", "name", "expected"),
    [
        (AclOperation.READ, GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (AclOperation.WRITE, "mover", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_both_the_group_and_the_transactional_id_must_be_allowed(
    coordinator: SimulatedNode, operation: AclOperation, name: str, expected: ErrorCode
) -> None:
    producer = TransactionalProducer(coordinator, "mover", PROTOCOL_1).start()
    deny(coordinator, (operation, name))
    assert add_offsets(producer) == expected
