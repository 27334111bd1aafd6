"""Transactions as administrators see them: DescribeTransactions, ListTransactions, and ending hanging ones."""

import contextlib
from collections.abc import Iterator
from typing import Any

import kafka
import pytest
from kafka.admin import AbortTransactionSpec, KafkaAdminClient
from kafka.errors import TransactionalIdNotFoundError

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from quire.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from quire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from quire.testing import WireConnection
from tests.wire.clients import eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.raw import list_offset
from tests.wire.raw_transactions import Txn, began, described_transaction, wait_until_over


@pytest.fixture(scope="module")
def kafka_python(bootstrap: str, coordinators: None) -> Iterator[KafkaAdminClient]:
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as client:
        yield client


def listed(connection: WireConnection, version: int = 2, **filters: Any) -> dict[str, tuple[int, str]]:
    answer = connection.call(ListTransactionsRequest(**filters), version, ListTransactionsResponse)
    assert answer.error_code == ErrorCode.NONE
    return {each.transactional_id: (each.producer_id, each.transaction_state) for each in answer.transaction_states}


def test_a_transaction_is_described_from_its_beginning_to_its_end(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic(2)
    producer = Txn(connection, new_transactional_id()).init(timeout_ms=12_345)
    empty = described_transaction(connection, producer.transactional_id)
    assert (empty.error_code, empty.transaction_state, empty.transaction_timeout_ms) == (0, "Empty", 12_345)
    assert (empty.transaction_start_time_ms, empty.topics) == (-1, [])
    assert (empty.producer_id, empty.producer_epoch) == (producer.producer_id, 0)
    for partition in (0, 1):
        producer.produce(topic, b"x", partition=partition)
    ongoing = described_transaction(connection, producer.transactional_id)
    assert (ongoing.transaction_state, ongoing.producer_epoch) == ("Ongoing", 0)
    assert ongoing.transaction_start_time_ms > 1_700_000_000_000
    assert [(each.topic, sorted(each.partitions)) for each in ongoing.topics] == [(topic, [0, 1])]
    producer.commit()
    wait_until_over(producer)
    ended = described_transaction(connection, producer.transactional_id)
    assert (ended.producer_epoch, ended.topics) == (1, [])


def test_unknown_transactional_ids_are_described_as_such(
    connection: WireConnection, new_transactional_id: NewName
) -> None:
    known = Txn(connection, new_transactional_id()).init().transactional_id
    unknown = new_transactional_id()
    request = DescribeTransactionsRequest(transactional_ids=[unknown, known, ""])
    answer = connection.call(request, 0, DescribeTransactionsResponse)
    assert {each.transactional_id: each.error_code for each in answer.transaction_states} == {
        unknown: ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        known: ErrorCode.NONE,
        "": ErrorCode.INVALID_REQUEST,
    }


@pytest.mark.parametrize("version", range(3))
def test_every_version_lists_transactions(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName, version: int
) -> None:
    producer = began(connection, new_transactional_id(), make_topic(), 2)
    found = listed(connection, version)
    assert found[producer.transactional_id] == (producer.producer_id, "Ongoing")


@pytest.mark.parametrize(
    ("filters", "is_found"),
    [
        ({"state_filters": ["Ongoing"]}, True),
        ({"state_filters": ["Empty", "Ongoing"]}, True),
        ({"state_filters": ["Ongoing", "nonsense"]}, True),
        ({"state_filters": ["Empty"]}, False),
        ({"state_filters": ["nonsense"]}, False),
        ({"state_filters": ["ongoing"]}, False),
        ({"producer_id_filters": [1 << 40]}, False),
        ({"duration_filter": 0}, True),
        ({"duration_filter": 3_600_000}, False),
        ({"transactional_id_pattern": ""}, True),
        ({"transactional_id_pattern": "txn-.*"}, True),
        ({"transactional_id_pattern": "txn-"}, False),
        ({"transactional_id_pattern": "something else.*"}, False),
        ({"state_filters": ["Ongoing"], "transactional_id_pattern": ".*"}, True),
    ],
)
def test_filters_choose_transactions(
    connection: WireConnection,
    make_topic: MakeTopic,
    new_transactional_id: NewName,
    filters: dict[str, Any],
    is_found: bool,
) -> None:
    producer = began(connection, new_transactional_id(), make_topic(), 2)
    eventually(lambda: (producer.transactional_id in listed(connection, **filters)) == is_found)


def test_transactions_are_found_by_producer_id(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    producer = began(connection, new_transactional_id(), make_topic(), 2)
    assert list(listed(connection, producer_id_filters=[producer.producer_id])) == [producer.transactional_id]


def test_states_that_do_not_exist_are_named(connection: WireConnection, coordinators: None) -> None:
    request = ListTransactionsRequest(state_filters=["Ongoing", "nonsense", "empty"])
    answer = connection.call(request, 2, ListTransactionsResponse)
    assert sorted(answer.unknown_state_filters) == ["empty", "nonsense"]


def test_a_bad_pattern_is_refused(connection: WireConnection, coordinators: None) -> None:
    answer = connection.call(ListTransactionsRequest(transactional_id_pattern="("), 2, ListTransactionsResponse)
    assert (answer.error_code, answer.transaction_states) == (ErrorCode.INVALID_REGULAR_EXPRESSION, [])


def test_kafka_python_lists_and_describes_transactions(
    connection: WireConnection, kafka_python: KafkaAdminClient, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    producer = began(connection, new_transactional_id(), topic, 2)
    by_broker = kafka_python.list_transactions(state_filters=["Ongoing"])
    assert producer.transactional_id in [each.transactional_id for found in by_broker.values() for each in found]
    described = kafka_python.describe_transactions([producer.transactional_id])[producer.transactional_id]
    assert (described.state, described.producer_id) == ("Ongoing", producer.producer_id)
    assert described.topic_partitions == {kafka.TopicPartition(topic, 0)}
    with pytest.raises(TransactionalIdNotFoundError):
        kafka_python.describe_transactions([new_transactional_id()])


def test_an_administrator_aborts_what_hangs_in_one_partition(
    connection: WireConnection, kafka_python: KafkaAdminClient, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    producer = began(connection, new_transactional_id(), topic, 2)
    partition = kafka.TopicPartition(topic, 0)
    (active,) = kafka_python.describe_producers([partition])[partition].active_producers
    assert active.current_transaction_start_offset == 0
    kafka_python.abort_transaction(AbortTransactionSpec(partition, producer.producer_id, producer.epoch))
    assert list_offset(connection, topic, -1, isolation_level=1).offset == 2


def test_markers_for_missing_partitions_are_refused_one_by_one(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    producer = began(connection, new_transactional_id(), topic, 1)
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=False,
        coordinator_epoch=0,
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=[0, 9]),
            WritableTxnMarkerTopic(name=f"{topic}-nowhere", partition_indexes=[0]),
        ],
    )
    answer = connection.call(WriteTxnMarkersRequest(markers=[marker]), 1, WriteTxnMarkersResponse)
    (found,) = answer.markers
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found.producer_id == producer.producer_id
    assert {(t.name, p.partition_index): p.error_code for t in found.topics for p in t.partitions} == {
        (topic, 0): ErrorCode.NONE,
        (topic, 9): unknown,
        (f"{topic}-nowhere", 0): unknown,
    }
