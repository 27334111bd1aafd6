"""EndTxn: the decision, and the epoch with which the producer continues."""

from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.end_txn import EndTxnResponse
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode
from tests.node.transactional_producer import PROTOCOL_1, TransactionalProducer


def test_protocol_2_responds_with_the_epoch_of_the_next_transaction(coordinator: SimulatedNode) -> None:
    producer = TransactionalProducer(coordinator).start()
    producer.produce(0)
    answer = coordinator.call(producer.end_request(commit=True), 5, EndTxnResponse)
    assert (answer.error_code, answer.producer_id) == (ErrorCode.NONE, producer.producer_id)
    assert answer.producer_epoch == producer.epoch + 1


def test_protocol_1_keeps_the_epoch(coordinator: SimulatedNode) -> None:
    producer = TransactionalProducer(coordinator, protocol=PROTOCOL_1).start()
    for _ in range(2):
        assert producer.add_partitions(0) == [ErrorCode.NONE]
        answer = coordinator.call(producer.end_request(commit=True), 4, EndTxnResponse)
        assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, -1)


def test_a_transaction_that_has_not_begun_cannot_be_ended(coordinator: SimulatedNode) -> None:
    producer = TransactionalProducer(coordinator, protocol=PROTOCOL_1).start()
    assert producer.end(commit=True) == ErrorCode.INVALID_TXN_STATE


def test_a_transactional_id_that_may_not_be_used_is_refused(coordinator: SimulatedNode) -> None:
    producer = TransactionalProducer(coordinator).start()
    producer.produce(0)
    deny(coordinator, (AclOperation.WRITE, producer.transactional_id))
    assert producer.end(commit=True) == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert coordinator.node.partitions.leader("t", None, 0).partition.last_stable_offset == 0
