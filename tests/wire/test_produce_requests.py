"""Produce as it is on the wire: versions, acknowledgements, checks of every batch, errors per record."""

import gzip
import time

import pytest
import zstandard

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from quire.testing import WireConnection
from quire.testing.wire_connection import request_frame
from tests.wire.batches import NOW_MS, batch, record, varint
from tests.wire.conftest import MakeTopic
from tests.wire.raw import fetch, list_offset, new_producer_id, produce, produce_request, records_of

NOTHING = MetadataRequest(topics=[])
TWO = [b"a", b"b"]
HOUR_MS = 3_600_000


def now_ms() -> int:
    return int(time.time() * 1000)


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_appends_and_says_where(connection: WireConnection, make_topic: MakeTopic, version: int) -> None:
    topic = make_topic()
    for base_offset in (0, 2):
        answer = produce(connection, topic, batch(TWO), version=version)
        assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (ErrorCode.NONE, base_offset, -1)
        assert answer.log_start_offset == (0 if version >= 5 else -1)
    stored = records_of(fetch(connection, topic))
    assert stored == batch(TWO, leader_epoch=0) + batch(TWO, base_offset=2, leader_epoch=0), "batches stay closed"


def test_log_append_time_is_told_and_stored(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    answer = produce(connection, topic, batch(TWO))
    assert abs(answer.log_append_time_ms - now_ms()) < 60_000
    stored = records_of(fetch(connection, topic))
    expected = batch(TWO, leader_epoch=0, attributes=8, max_timestamp=answer.log_append_time_ms)
    assert stored[:21] == expected[:21]
    assert stored[21:23] == b"\0\x08"
    assert stored[35:43] == answer.log_append_time_ms.to_bytes(8, "big")


REFUSED: dict[str, tuple[bytes, list[ErrorCode]]] = {
    "bad crc": (batch(crc=1), [ErrorCode.CORRUPT_MESSAGE]),
    "last offset delta says more": (batch(TWO, last_offset_delta=5), [ErrorCode.INVALID_RECORD]),
    "last offset delta says less": (batch(TWO, last_offset_delta=0), [ErrorCode.INVALID_RECORD]),
    "count says more": (batch(TWO, record_count=3, last_offset_delta=2), [ErrorCode.INVALID_RECORD]),
    "count says less": (batch(TWO, record_count=1, last_offset_delta=0), [ErrorCode.INVALID_RECORD]),
    "no records": (batch([]), [ErrorCode.INVALID_RECORD]),
    "negative count": (batch(record_count=-1, last_offset_delta=-2), [ErrorCode.INVALID_RECORD]),
    "magic 0": (batch(magic=0), [ErrorCode.INVALID_RECORD, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT]),
    "magic 1": (batch(magic=1), [ErrorCode.INVALID_RECORD, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT]),
    "magic 3": (batch(magic=3), [ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD]),
    "two batches": (batch() + batch(), [ErrorCode.INVALID_RECORD]),
    "nothing": (b"", [ErrorCode.INVALID_RECORD]),
    "cut off": (batch()[:-3], [ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE]),
    "three bytes": (b"abc", [ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE]),
    "length says more": (batch(length=5000), [ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE]),
    "length says less": (batch(length=20), [ErrorCode.CORRUPT_MESSAGE]),
    "negative length": (batch(length=-5), [ErrorCode.CORRUPT_MESSAGE]),
    "a control batch": (batch(attributes=0x20), [ErrorCode.INVALID_RECORD]),
    "base offset is not 0": (batch(base_offset=77), [ErrorCode.INVALID_RECORD]),
    "bytes behind the records": (batch(records=record(b"v") + b"zzz"), [ErrorCode.INVALID_RECORD]),
    "bytes behind compressed records": (
        batch(attributes=1, records=gzip.compress(record(b"v") + b"zzz")),
        [ErrorCode.INVALID_RECORD],
    ),
    "header without a name": (
        batch(records=varint(9) + b"\0\0\0\1\1" + varint(1) + varint(-1) + b"\0\0"),
        [ErrorCode.INVALID_RECORD],
    ),
    "negative record length": (
        batch(attributes=1, records=gzip.compress(varint(-5) + b"aaaa")),
        [ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE],
    ),
}
BROKEN_INSIDE: dict[str, bytes] = {
    "unknown codec": batch(attributes=5),
    "not gzip": batch(attributes=1, records=b"garbage!!"),
    "not lz4": batch(attributes=3, records=b"garbage!!"),
    "not zstd": batch(attributes=4, records=b"garbage!!"),
    "not snappy": batch(attributes=2, records=b"\xff\xff\xff\xff\xff\xffgarbage!!"),
    "junk for records": batch(records=b"\xff" * 8),
    "offsets fall, compressed": batch(TWO, attributes=1, records=gzip.compress(record(b"a", 1) + record(b"b", 0))),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_broken_batch_is_refused_and_nothing_of_it_stored(
    connection: WireConnection, make_topic: MakeTopic, case: str
) -> None:
    records, codes = REFUSED[case]
    topic = make_topic()
    answer = produce(connection, topic, records)
    assert answer.error_code in codes, ErrorCode(answer.error_code)
    assert answer.base_offset == -1
    assert produce(connection, topic, batch()).base_offset == 0


@pytest.mark.parametrize("case", BROKEN_INSIDE)
def test_records_that_cannot_be_read_are_refused(connection: WireConnection, make_topic: MakeTopic, case: str) -> None:
    """Apache Kafka calls most of these an UNKNOWN_SERVER_ERROR; a better name for it is welcome."""
    topic = make_topic()
    answer = produce(connection, topic, BROKEN_INSIDE[case])
    assert answer.error_code in (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INVALID_RECORD,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    )
    assert produce(connection, topic, batch()).base_offset == 0


def test_zstd_needs_version_7(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    compressed = batch(attributes=4, records=zstandard.compress(record(b"v")))
    assert produce(connection, topic, compressed, version=6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert produce(connection, topic, compressed, version=7).error_code == ErrorCode.NONE


@pytest.mark.parametrize("attributes", [0, 1])
def test_each_record_without_a_key_is_named(connection: WireConnection, make_topic: MakeTopic, attributes: int) -> None:
    topic = make_topic(cleanup_policy="compact")
    records = record(b"a", key=b"k") + record(b"b", 1) + record(b"c", 2)
    body = gzip.compress(records) if attributes else records
    answer = produce(connection, topic, batch([b"a", b"b", b"c"], records=body, attributes=attributes))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1, 2]
    assert "key" in (answer.record_errors[0].batch_index_error_message or "")
    assert answer.error_message


def test_a_record_from_the_future_is_named(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    stamps = {"base_timestamp": now_ms(), "max_timestamp": now_ms() + 2 * HOUR_MS}
    records = record(b"a") + record(b"b", 1, timestamp_delta=2 * HOUR_MS)
    answer = produce(connection, topic, batch(TWO, records=records, **stamps))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == [1]


def test_a_batch_above_the_limit_is_too_large(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes="1000")
    exactly = batch([b"x" * (1000 - len(batch([b""])) - 3)])
    assert 998 <= len(exactly) <= 1000
    assert produce(connection, topic, exactly).error_code == ErrorCode.NONE
    assert produce(connection, topic, batch([b"x" * 1000])).error_code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_acks_are_all_one_or_none(connection: WireConnection, make_topic: MakeTopic, acks: int) -> None:
    answer = produce(connection, make_topic(), batch(), acks=acks)
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS


@pytest.mark.parametrize("partition", [1, 99, -1])
def test_unknown_partitions_are_said_to_be_so(
    connection: WireConnection, make_topic: MakeTopic, partition: int
) -> None:
    answer = produce(connection, make_topic(), batch(), partition=partition)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_unknown_topics_are_said_to_be_so_and_not_created(connection: WireConnection, make_topic: MakeTopic) -> None:
    name = make_topic() + "-unknown"
    assert produce(connection, name, batch()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(connection, name, batch()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_unknown_topic_ids_are_said_to_be_so(connection: WireConnection) -> None:
    data = TopicProduceData(
        topic_id=b"0123456789abcdef", partition_data=[PartitionProduceData(index=0, records=batch())]
    )
    answer = connection.call(ProduceRequest(acks=-1, timeout_ms=100, topic_data=[data]), 13, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_one_bad_partition_does_not_spoil_the_others(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic, other = make_topic(partitions=3), make_topic()
    request = produce_request(topic, batch())
    request.topic_data[0].partition_data += [
        PartitionProduceData(index=1, records=batch(crc=1)),
        PartitionProduceData(index=2, records=batch(TWO)),
    ]
    request.topic_data.append(produce_request(other, batch(TWO)).topic_data[0])
    answer = connection.call(request, 12, ProduceResponse)
    codes = {
        (found.name, partition.index): partition.error_code
        for found in answer.responses
        for partition in found.partition_responses
    }
    assert codes == {(topic, 0): 0, (topic, 1): ErrorCode.CORRUPT_MESSAGE, (topic, 2): 0, (other, 0): 0}


def test_acks_0_gets_no_answer(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    for _ in range(3):
        connection.send(produce_request(topic, batch(), acks=0), 12)
    connection.call(NOTHING, 12, MetadataResponse)
    assert list_offset(connection, topic, -1).offset == 3


def test_an_error_with_acks_0_closes_the_connection(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with WireConnection(bootstrap) as connection:
        connection.send(produce_request(topic, batch(crc=1), acks=0), 12)
        assert connection.is_closed_by_peer()


def test_many_produce_requests_at_once_are_answered_in_order(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    acks = [-1, 1, 0, 1, -1] * 40
    sent = [request_frame(produce_request(topic, batch([b"%d" % n]), acks=one), 12, n) for n, one in enumerate(acks)]
    connection.send_bytes(b"".join(sent))
    for number, one in enumerate(acks):
        if one != 0:
            answer = connection.receive(ProduceResponse, 12, number)
            assert answer.responses[0].partition_responses[0].base_offset == number


def test_the_last_five_batches_of_a_producer_are_remembered(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic, producer_id = make_topic(), new_producer_id(connection)

    def send(sequence: int, values: list[bytes], epoch: int = 0) -> tuple[int, int]:
        records = batch(values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        answer = produce(connection, topic, records)
        return answer.error_code, answer.base_offset

    assert [send(2 * n, TWO) for n in range(7)] == [(0, 2 * n) for n in range(7)]
    assert [send(2 * n, TWO) for n in (6, 2, 3, 4, 5)] == [(0, 12), (0, 4), (0, 6), (0, 8), (0, 10)]
    assert send(0, TWO)[0] in (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert send(20, TWO)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(12, [b"a"])[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(3, TWO, epoch=1)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(0, TWO, epoch=1) == (0, 14)
    assert send(14, TWO, epoch=0)[0] == ErrorCode.INVALID_PRODUCER_EPOCH
    assert list_offset(connection, topic, -1).offset == 16


def test_sequences_wrap_around(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic, producer_id = make_topic(), new_producer_id(connection)
    largest = (1 << 31) - 1
    for base_offset, sequence in ((0, largest - 1), (2, 0), (4, 2)):
        records = batch(TWO, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        answer = produce(connection, topic, records)
        assert (answer.error_code, answer.base_offset) == (0, base_offset)


def test_a_producer_that_is_not_known_may_start_anywhere(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic, producer_id = make_topic(), new_producer_id(connection)
    records = batch(producer_id=producer_id, producer_epoch=0, base_sequence=5)
    assert produce(connection, topic, records).error_code == ErrorCode.NONE


def test_producer_ids_are_never_given_twice(bootstrap: str) -> None:
    with WireConnection(bootstrap) as one, WireConnection(bootstrap) as other:
        given = [new_producer_id(connection) for connection in (one, other) * 20]
    assert len(set(given)) == len(given)


def test_timestamps_before_1970_and_none_at_all_are_taken(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    for stamp in (-1, 0, NOW_MS):
        assert produce(connection, topic, batch(base_timestamp=stamp)).error_code == ErrorCode.NONE
