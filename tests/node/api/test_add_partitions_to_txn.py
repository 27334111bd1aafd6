"""AddPartitionsToTxn: for one transaction of a client, and for several transactions in a broker's request."""

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode
from tests.node.transactional_producer import PROTOCOL_1, TransactionalProducer


def add_as_client(producer: TransactionalProducer, *topics: str) -> dict[str, list[int]]:
    """The errors by topic."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0]) for topic in topics],
    )
    return errors(producer.node.call(request, 3, AddPartitionsToTxnResponse).results_by_topic_v3_and_below)


def errors(topics: list[AddPartitionsToTxnTopicResult]) -> dict[str, list[int]]:
    return {topic.name: [part.partition_error_code for part in topic.results_by_partition] for topic in topics}


def of_broker(producer: TransactionalProducer, transactional_id: str) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[AddPartitionsToTxnTopic(name="t", partitions=[0, 1])],
    )


def test_a_client_adds_all_partitions_or_none(coordinator: SimulatedNode) -> None:
    coordinator.create_topic("u")
    producer = TransactionalProducer(coordinator, protocol=PROTOCOL_1).start()
    deny(coordinator, (AclOperation.WRITE, "u"))
    assert add_as_client(producer, "t", "u") == {
        "u": [ErrorCode.TOPIC_AUTHORIZATION_FAILED],
        "t": [ErrorCode.OPERATION_NOT_ATTEMPTED],
    }
    assert add_as_client(producer, "t") == {"t": [ErrorCode.NONE]}


def test_a_client_may_not_add_internal_topics(coordinator: SimulatedNode) -> None:
    producer = TransactionalProducer(coordinator, protocol=PROTOCOL_1).start()
    refused = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert add_as_client(producer, "__consumer_offsets") == {"__consumer_offsets": refused}


def test_each_transaction_that_a_broker_names_has_its_own_result(coordinator: SimulatedNode) -> None:
    producer = TransactionalProducer(coordinator).start()
    transactions = [of_broker(producer, producer.transactional_id), of_broker(producer, "unknown")]
    request = AddPartitionsToTxnRequest(transactions=transactions)
    answer = coordinator.call(request, 5, AddPartitionsToTxnResponse)
    assert answer.error_code == ErrorCode.NONE
    assert {result.transactional_id: errors(result.topic_results) for result in answer.results_by_transaction} == {
        producer.transactional_id: {"t": [ErrorCode.NONE] * 2},
        "unknown": {"t": [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2},
    }


def test_only_brokers_name_several_transactions(coordinator: SimulatedNode) -> None:
    producer = TransactionalProducer(coordinator).start()
    deny(coordinator, (AclOperation.CLUSTER_ACTION, CLUSTER_NAME))
    request = AddPartitionsToTxnRequest(transactions=[of_broker(producer, producer.transactional_id)])
    answer = coordinator.call(request, 5, AddPartitionsToTxnResponse)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    (result,) = answer.results_by_transaction
    assert errors(result.topic_results) == {"t": [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2}
