"""What readers see of transactions, in bytes: the last stable offset, aborted ones, markers."""

import struct
from dataclasses import dataclass

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from quire.protocol.messages.fetch import FetchResponse
from quire.testing import WireConnection
from tests.wire.batches import batch
from tests.wire.clients import eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.raw import fetch, fetch_request, list_offset, produce, records_of
from tests.wire.raw_transactions import (
    CONTROL,
    TRANSACTIONAL,
    Txn,
    began,
    begin,
    fetch_committed,
    now_ms,
    wait_until_over,
)

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
COMMITTED = 1


def ends(connection: WireConnection, topic: str) -> tuple[int, int]:
    """The ends for read_committed and read_uncommitted readers."""
    stable = list_offset(connection, topic, LATEST, isolation_level=COMMITTED).offset
    return stable, list_offset(connection, topic, LATEST).offset


def plain(value: bytes) -> bytes:
    return batch([value], base_timestamp=now_ms())


def other(connection: WireConnection, new_transactional_id: NewName) -> Txn:
    return Txn(connection, new_transactional_id()).init()


def test_the_last_stable_offset_stays_before_the_oldest_open_transaction(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    first, second = other(connection, new_transactional_id), other(connection, new_transactional_id)
    produce(connection, topic, plain(b"before"))
    assert ends(connection, topic) == (1, 1)
    begin(first, topic)
    begin(second, topic)
    produce(connection, topic, plain(b"in no transaction"))
    assert ends(connection, topic) == (1, 4)
    second.commit()
    wait_until_over(second)
    assert ends(connection, topic) == (1, 5), "the first is still open"
    first.commit()
    wait_until_over(first)
    assert ends(connection, topic) == (6, 6)


def test_a_reader_of_committed_records_gets_nothing_from_an_open_transaction(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    produce(connection, topic, plain(b"before"))
    producer = began(connection, new_transactional_id(), topic, 2)
    found = fetch_committed(connection, topic)
    assert (found.last_stable_offset, found.high_watermark) == (1, 2)
    assert [each.base_offset for each in batches(records_of(found))] == [0]
    assert found.aborted_transactions == []
    assert records_of(fetch_committed(connection, topic, 1)) == b""
    everything = fetch(connection, topic)
    assert [each.base_offset for each in batches(records_of(everything))] == [0, 1]
    assert everything.aborted_transactions is None
    producer.commit()
    wait_until_over(producer)
    assert [each.base_offset for each in batches(records_of(fetch_committed(connection, topic)))] == [0, 1, 2]


def test_aborted_transactions_are_listed_by_producer_and_first_offset(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    first, second = other(connection, new_transactional_id), other(connection, new_transactional_id)
    begin(first, topic)  # 0
    begin(second, topic)  # 1
    begin(first, topic)  # 2
    second.abort()  # 3
    wait_until_over(second, "CompleteAbort")
    first.abort()  # 4
    wait_until_over(first, "CompleteAbort")
    begin(second, topic)  # 5
    second.commit()  # 6
    wait_until_over(second)
    begin(first, topic)  # 7
    first.abort()  # 8
    wait_until_over(first, "CompleteAbort")
    expected = {(first.producer_id, 0), (second.producer_id, 1), (first.producer_id, 7)}
    assert aborted(connection, topic, 0) == expected
    assert aborted(connection, topic, 3) == expected, "both began before and ended after"
    assert aborted(connection, topic, 4) == expected - {(second.producer_id, 1)}
    assert aborted(connection, topic, 5) == {(first.producer_id, 7)}
    assert aborted(connection, topic, 9) == set()


def aborted(connection: WireConnection, topic: str, offset: int) -> set[tuple[int, int]]:
    listed = fetch_committed(connection, topic, offset).aborted_transactions
    assert listed is not None, "empty, never null, for who reads committed records"
    return {(each.producer_id, each.first_offset) for each in listed}


@pytest.mark.parametrize(("commit", "kind"), [(True, 1), (False, 0)])
def test_a_marker_is_a_control_batch_of_one_record(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName, commit: bool, kind: int
) -> None:
    topic = make_topic()
    producer = began(connection, new_transactional_id(), topic, 2)
    producer.end(commit=commit)
    eventually(lambda: ends(connection, topic) == (2, 2))
    data, marker = batches(records_of(fetch(connection, topic)))
    assert data.attributes & (TRANSACTIONAL | CONTROL) == TRANSACTIONAL
    assert marker.attributes & (TRANSACTIONAL | CONTROL) == TRANSACTIONAL | CONTROL
    assert (marker.producer_id, marker.base_sequence, marker.record_count) == (data.producer_id, -1, 1)
    assert (data.producer_epoch, marker.producer_epoch) == (0, 1), "protocol 2 bumps before it writes"
    assert marker.key == struct.pack(">hh", 0, kind)
    version, coordinator_epoch = struct.unpack_from(">hi", marker.value)
    assert version in (0, 1)
    assert coordinator_epoch >= 0


def test_markers_of_protocol_1_carry_the_epoch_of_the_records(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    producer = began(connection, new_transactional_id(), topic, 1)
    producer.commit()
    wait_until_over(producer)
    data, marker = batches(records_of(fetch(connection, topic)))
    assert (data.producer_epoch, marker.producer_epoch) == (0, 0)


def test_a_partition_that_was_added_and_never_written_to_gets_a_marker(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    producer = Txn(connection, new_transactional_id(), protocol=1).init()
    producer.add({topic: [0]})
    producer.commit()
    wait_until_over(producer)
    assert ends(connection, topic) == (1, 1)
    (marker,) = batches(records_of(fetch(connection, topic)))
    assert marker.attributes & CONTROL


def test_a_transaction_covers_all_of_its_partitions(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    first, second = make_topic(3), make_topic(2)
    topic_partitions = [(first, number) for number in range(3)] + [(second, number) for number in range(2)]
    producer = Txn(connection, new_transactional_id()).init()
    for topic, number in topic_partitions:
        assert producer.produce(topic, b"one", b"two", partition=number) == ErrorCode.NONE
    assert all(stable(connection, topic, number) == 0 for topic, number in topic_partitions)
    producer.commit()
    wait_until_over(producer)
    assert all(stable(connection, topic, number) == 3 for topic, number in topic_partitions)


def stable(connection: WireConnection, topic: str, partition: int) -> int:
    return list_offset(connection, topic, LATEST, partition=partition, isolation_level=COMMITTED).offset


def test_times_of_open_transactions_are_hidden_from_readers_of_committed_records(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    producer = began(connection, new_transactional_id(), topic, 2)
    hidden = list_offset(connection, topic, 0, isolation_level=COMMITTED)
    assert (hidden.error_code, hidden.offset) == (ErrorCode.NONE, -1)
    assert list_offset(connection, topic, 0).offset == 0
    producer.commit()
    wait_until_over(producer)
    assert list_offset(connection, topic, 0, isolation_level=COMMITTED).offset == 0


def test_a_fetch_that_waits_is_answered_when_the_transaction_ends(
    bootstrap: str, connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    producer = began(connection, new_transactional_id(), topic, 2)
    request = fetch_request(topic, 0, max_wait_ms=10_000)
    request.isolation_level = COMMITTED
    with WireConnection(bootstrap) as reader:
        waiting = reader.send(request, 12)
        producer.commit()
        (answer,) = reader.receive(FetchResponse, 12, waiting).responses
        assert [each.base_offset for each in batches(records_of(answer.partitions[0]))] == [0, 1]


def test_producers_are_described_with_their_open_transactions(
    connection: WireConnection, make_topic: MakeTopic, new_transactional_id: NewName
) -> None:
    topic = make_topic()
    produce(connection, topic, plain(b"before"))
    producer = began(connection, new_transactional_id(), topic, 2)
    (active,) = active_producers(connection, topic)
    assert (active.producer_id, active.producer_epoch, active.last_sequence) == (producer.producer_id, 0, 0)
    assert active.current_txn_start_offset == 1
    producer.commit()
    wait_until_over(producer)
    (ended,) = active_producers(connection, topic)
    assert (ended.producer_epoch, ended.last_sequence, ended.current_txn_start_offset) == (1, -1, -1)


def active_producers(connection: WireConnection, topic: str) -> list[ProducerState]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    return connection.call(request, 0, DescribeProducersResponse).topics[0].partitions[0].active_producers


@dataclass(slots=True)
class Batch:
    base_offset: int
    attributes: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    records: bytes

    @property
    def key(self) -> bytes:
        """Key and value of the only record of a marker, whose lengths all fit into one byte."""
        start, size = 5, self.records[4] // 2
        return self.records[start : start + size]

    @property
    def value(self) -> bytes:
        start = 5 + len(self.key) + 1
        return self.records[start : start + self.records[start - 1] // 2]


def batches(records: bytes) -> list[Batch]:
    """Complete batches, split without Quire's code."""
    found, position = [], 0
    while position + 61 <= len(records):
        base_offset, length = struct.unpack_from(">qi", records, position)
        fields = struct.unpack_from(">hiqqqhii", records, position + 21)
        attributes, _, _, _, producer_id, producer_epoch, base_sequence, record_count = fields
        content = records[position + 61 : position + 12 + length]
        found.append(Batch(base_offset, attributes, producer_id, producer_epoch, base_sequence, record_count, content))
        position += 12 + length
    return found
