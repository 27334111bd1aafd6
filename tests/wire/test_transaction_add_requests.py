"""AddPartitionsToTxn, sent without a client, and Produce, which does the same in protocol 2."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from quire.testing import WireConnection
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.raw import list_offset
from tests.wire.raw_transactions import (
    ADDS_PARTITIONS_FROM,
    CONTROL,
    TRANSACTIONAL,
    Txn,
    began,
    described_transaction,
    transaction_state,
)


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds_partitions(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName, version: int
) -> None:
    first, second = make_topic(2), make_topic()
    producer = Txn(connection, new_transactional_id(), protocol=1).init()
    good = {(first, 0): ErrorCode.NONE, (first, 1): ErrorCode.NONE, (second, 0): ErrorCode.NONE}
    for _ in range(2):
        assert producer.add({first: [0, 1], second: [0]}, version=version) == good
    found = described_transaction(connection, producer.transactional_id)
    assert found.transaction_state == "Ongoing"
    assert {each.topic: sorted(each.partitions) for each in found.topics} == {first: [0, 1], second: [0]}


def test_one_missing_partition_keeps_all_others_out(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    producer = Txn(connection, new_transactional_id(), protocol=1).init()
    assert producer.add({topic: [0, 9], f"{topic}-nowhere": [0]}) == {
        (topic, 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        (topic, 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (f"{topic}-nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert transaction_state(connection, producer.transactional_id) == "Empty"
    assert producer.add({}) == {}


def test_brokers_ask_whether_partitions_are_in_a_transaction(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic(2)
    producer = began(connection, new_transactional_id(), topic, 2)
    asked = AddPartitionsToTxnTransaction(
        verify_only=True, topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0, 1])], **producer.identity
    )
    for version in (4, 5):
        answer = connection.call(AddPartitionsToTxnRequest(transactions=[asked]), version, AddPartitionsToTxnResponse)
        (found,) = answer.results_by_transaction
        (by_topic,) = found.topic_results
        assert (found.transactional_id, by_topic.name) == (producer.transactional_id, topic)
        assert {each.partition_index: each.partition_error_code for each in by_topic.results_by_partition} == {
            0: ErrorCode.NONE,
            1: ErrorCode.TRANSACTION_ABORTABLE,
        }


@pytest.mark.parametrize("version", [3, 8, 10, 11])
def test_until_version_11_nothing_is_written_to_a_partition_that_was_not_added(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName, version: int
) -> None:
    topic = make_topic(2)
    producer = Txn(connection, new_transactional_id(), protocol=1).init()
    refused = ErrorCode.TRANSACTION_ABORTABLE if version >= 11 else ErrorCode.INVALID_TXN_STATE
    assert producer.produce(topic, b"too early", version=version) == refused
    producer.add({topic: [1]})
    assert producer.produce(topic, b"elsewhere", version=version) == refused
    assert list_offset(connection, topic, -1).offset == 0
    assert producer.produce(topic, b"here", partition=1, version=version) == ErrorCode.NONE


@pytest.mark.parametrize("version", [ADDS_PARTITIONS_FROM, ADDS_PARTITIONS_FROM + 1])
def test_from_version_12_on_a_partition_is_added_by_writing_to_it(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName, version: int
) -> None:
    topic = make_topic(2)
    producer = Txn(connection, new_transactional_id()).init()
    assert producer.produce(topic, b"first", version=version) == ErrorCode.NONE
    assert producer.produce(topic, b"second", partition=1, version=version) == ErrorCode.NONE
    found = described_transaction(connection, producer.transactional_id)
    assert [(each.topic, sorted(each.partitions)) for each in found.topics] == [(topic, [0, 1])]
    producer.commit()


def test_records_of_a_transaction_need_its_id(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic, other = make_topic(), Txn(connection, new_transactional_id()).init()
    producer = Txn(connection, new_transactional_id()).init()
    refused = producer.produce(topic, b"whose?", transactional_id=None)
    assert refused == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    for stranger in (other.transactional_id, "nobody's"):
        assert producer.produce(topic, b"x", transactional_id=stranger) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert list_offset(connection, topic, -1).offset == 0


def test_clients_cannot_write_markers_themselves(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    producer = Txn(connection, new_transactional_id()).init()
    forged = producer.produce(topic, b"\0\0\0\1", attributes=TRANSACTIONAL | CONTROL)
    assert forged == ErrorCode.INVALID_RECORD


def test_a_transaction_of_protocol_2_starts_with_sequence_0(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    producer = Txn(connection, new_transactional_id()).init()
    assert producer.produce(topic, b"fifth", sequence=5) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.produce(topic, b"first", sequence=0) == ErrorCode.NONE
