"""DescribeTransactions: each transactional id in its own entry."""

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode
from tests.node.transactional_producer import TransactionalProducer


def describe(node: SimulatedNode, *ids: str) -> list[TransactionState]:
    request = DescribeTransactionsRequest(transactional_ids=list(ids))
    return node.call(request, 0, DescribeTransactionsResponse).transaction_states


def test_an_open_transaction_is_described_with_its_partitions(coordinator: SimulatedNode) -> None:
    producer = TransactionalProducer(coordinator).start()
    producer.produce(1)
    (state,) = describe(coordinator, producer.transactional_id, producer.transactional_id)
    assert (state.error_code, state.transaction_state) == (ErrorCode.NONE, "Ongoing")
    assert (state.producer_id, state.producer_epoch) == (producer.producer_id, producer.epoch)
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [("t", [1])]


def test_ids_are_refused_one_by_one(coordinator: SimulatedNode) -> None:
    TransactionalProducer(coordinator, "mover").start()
    TransactionalProducer(coordinator, "secret").start()
    deny(coordinator, (AclOperation.DESCRIBE, "secret"))
    states = describe(coordinator, "secret", "unknown", "mover")
    assert [(state.transactional_id, state.error_code) for state in states] == [
        ("secret", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ("unknown", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
        ("mover", ErrorCode.NONE),
    ]
