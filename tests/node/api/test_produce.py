"""Produce: what is refused and how. See also `test_batch_checks` and `test_transactions_on_a_node`."""

import pytest

from quire.network.handler import CloseConnection
from quire.node.authorizer import AclOperation
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.produce import ProduceResponse
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request
from tests.node.transactional_producer import TransactionalProducer


def test_acks_0_is_never_answered_and_its_error_closes_the_connection(node: SimulatedNode) -> None:
    node.create_topic("t")
    assert node.send(produce_request("t", acks=0), 9).value is None
    assert node.node.partitions.leader("t", None, 0).partition.high_watermark == 1
    with pytest.raises(CloseConnection, match="UNKNOWN_TOPIC_OR_PARTITION"):
        node.send(produce_request("nowhere", acks=0), 9)


def test_a_partition_named_twice_is_refused_and_nothing_is_appended(node: SimulatedNode) -> None:
    node.create_topic("t")
    request = produce_request("t")
    request.topic_data[0].partition_data *= 2
    answers = node.call(request, 9, ProduceResponse).responses[0].partition_responses
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST] * 2
    assert node.node.partitions.leader("t", None, 0).partition.high_watermark == 0


def test_clients_do_not_write_the_clusters_own_topics(node: SimulatedNode) -> None:
    node.create_topic("__consumer_offsets")
    (answer,) = node.call(produce_request("__consumer_offsets"), 9, ProduceResponse).responses[0].partition_responses
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_topic_that_may_not_be_written_is_refused_by_itself(node: SimulatedNode) -> None:
    node.create_topic("t")
    node.create_topic("u")
    deny(node, (AclOperation.WRITE, "u"))
    request = produce_request("t")
    request.topic_data += produce_request("u").topic_data
    answer = node.call(request, 9, ProduceResponse)
    assert [(topic.name, topic.partition_responses[0].error_code) for topic in answer.responses] == [
        ("t", ErrorCode.NONE),
        ("u", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ]
    assert node.node.partitions.leader("u", None, 0).partition.high_watermark == 0


def test_a_transactional_id_that_may_not_be_used_is_refused(coordinator: SimulatedNode) -> None:
    producer = TransactionalProducer(coordinator).start()
    deny(coordinator, (AclOperation.WRITE, producer.transactional_id))
    assert producer.produce(0) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]


@pytest.mark.parametrize("acks", [-2, 2])
def test_acks_that_do_not_exist_are_refused(node: SimulatedNode, acks: int) -> None:
    node.create_topic("t")
    (answer,) = node.call(produce_request("t", acks), 9, ProduceResponse).responses[0].partition_responses
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
