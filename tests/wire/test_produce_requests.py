"""Produce on the wire: versions, acknowledgements, checks of every batch, errors per record."""

import gzip
import time
from typing import NamedTuple

import pytest
import zstandard

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from quire.testing import WireConnection
from quire.testing.wire_connection import request_frame
from tests.wire.batches import NOW_MS, batch, record, varint
from tests.wire.clients import OTHER_BROKER
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


def test_log_append_time_is_returned_and_stored(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    answer = produce(connection, topic, batch(TWO))
    assert abs(answer.log_append_time_ms - now_ms()) < 60_000
    stored = records_of(fetch(connection, topic))
    expected = batch(TWO, leader_epoch=0, attributes=8, max_timestamp=answer.log_append_time_ms)
    assert stored[:21] == expected[:21]
    assert stored[21:23] == b"\0\x08"
    assert stored[35:43] == answer.log_append_time_ms.to_bytes(8, "big")


class Refusal(NamedTuple):
    """Quire's error for a batch; Apache Kafka has other codes for some, and other messages."""

    records: bytes
    code: ErrorCode
    message: str
    """The start of the message; the text of a codec may follow."""
    of_kafka: tuple[ErrorCode, ...] = ()


CORRUPT, INVALID, UNKNOWN = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR
OLD_FORMAT, NO_CODEC = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
MALFORMED = "record 0 of the batch: The record is malformed."
LEFT_BEHIND = "record 0 of the batch: There are bytes after the last record."
REFUSED: dict[str, Refusal] = {
    "bad crc": Refusal(batch(crc=1), CORRUPT, "A record batch has the CRC 0xd3f2ac75 but says 0x00000001"),
    "last offset delta says more": Refusal(
        batch(TWO, last_offset_delta=5), INVALID, "A record batch of 2 records has the last offset delta 5."
    ),
    "last offset delta says less": Refusal(
        batch(TWO, last_offset_delta=0), INVALID, "A record batch of 2 records has the last offset delta 0."
    ),
    "count says more": Refusal(
        batch(TWO, record_count=3, last_offset_delta=2), INVALID, "record 2 of the batch: The record is malformed."
    ),
    "count says less": Refusal(batch(TWO, record_count=1, last_offset_delta=0), INVALID, LEFT_BEHIND),
    "no records": Refusal(batch([]), INVALID, "A record batch says it has 0 records."),
    "negative count": Refusal(
        batch(record_count=-1, last_offset_delta=-2), INVALID, "A record batch says it has -1 records."
    ),
    "magic 0": Refusal(batch(magic=0), OLD_FORMAT, "Records in the old message format (magic 0)", of_kafka=(INVALID,)),
    "magic 1": Refusal(batch(magic=1), OLD_FORMAT, "Records in the old message format (magic 1)", of_kafka=(INVALID,)),
    "magic 3": Refusal(batch(magic=3), CORRUPT, "There is no record batch format with magic 3.", of_kafka=(INVALID,)),
    "two batches": Refusal(
        batch() + batch(), INVALID, "A produce request must have exactly one record batch for each of its partitions."
    ),
    "nothing": Refusal(b"", INVALID, "A produce request must have a record batch for each of its partitions."),
    "cut off": Refusal(batch()[:-3], CORRUPT, "A record batch of 69 bytes is cut off after 66.", of_kafka=(INVALID,)),
    "three bytes": Refusal(
        b"abc", CORRUPT, "A record batch needs at least 61 bytes, 3 are there.", of_kafka=(INVALID,)
    ),
    "length says more": Refusal(
        batch(length=5000), CORRUPT, "A record batch of 5012 bytes is cut off after 69.", of_kafka=(INVALID,)
    ),
    "length says less": Refusal(batch(length=20), CORRUPT, "A record batch has the impossible length 20."),
    "negative length": Refusal(batch(length=-5), CORRUPT, "A record batch has the impossible length -5."),
    "a control batch": Refusal(batch(attributes=0x20), INVALID, "Clients are not allowed to write control records."),
    "base offset is not 0": Refusal(
        batch(base_offset=77), INVALID, "The base offset of a produced batch is 0, not 77: the broker assigns it."
    ),
    "bytes behind the records": Refusal(batch(records=record(b"v") + b"zzz"), INVALID, LEFT_BEHIND),
    "bytes behind compressed records": Refusal(
        batch(attributes=1, records=gzip.compress(record(b"v") + b"zzz")), INVALID, LEFT_BEHIND
    ),
    "header without a name": Refusal(
        batch(records=varint(9) + b"\0\0\0\1\1" + varint(1) + varint(-1) + b"\0\0"), INVALID, MALFORMED
    ),
    "negative record length": Refusal(
        batch(attributes=1, records=gzip.compress(varint(-5) + b"aaaa")), INVALID, MALFORMED, of_kafka=(CORRUPT,)
    ),
}
UNREADABLE = (UNKNOWN, INVALID, CORRUPT, NO_CODEC)
CANNOT = "The records of a batch cannot be decompressed as"
BROKEN_INSIDE: dict[str, Refusal] = {
    "unknown codec": Refusal(batch(attributes=5), NO_CODEC, "There is no compression codec 5;", of_kafka=UNREADABLE),
    "not gzip": Refusal(batch(attributes=1, records=b"garbage!!"), CORRUPT, f"{CANNOT} gzip: ", of_kafka=UNREADABLE),
    "not lz4": Refusal(batch(attributes=3, records=b"garbage!!"), CORRUPT, f"{CANNOT} lz4: ", of_kafka=UNREADABLE),
    "not zstd": Refusal(batch(attributes=4, records=b"garbage!!"), CORRUPT, f"{CANNOT} zstd: ", of_kafka=UNREADABLE),
    "not snappy": Refusal(
        batch(attributes=2, records=b"\xff\xff\xff\xff\xff\xffgarbage!!"),
        CORRUPT,
        f"{CANNOT} snappy: ",
        of_kafka=UNREADABLE,
    ),
    "junk for records": Refusal(batch(records=b"\xff" * 8), INVALID, MALFORMED, of_kafka=UNREADABLE),
    "offsets fall, compressed": Refusal(
        batch(TWO, attributes=1, records=gzip.compress(record(b"a", 1) + record(b"b", 0))),
        INVALID,
        "record 0 of the batch: The record does not have the offset delta 0.",
        of_kafka=UNREADABLE,
    ),
}


def check_refused(answer: PartitionProduceResponse, refusal: Refusal) -> None:
    assert answer.base_offset == -1
    if OTHER_BROKER is not None:
        assert answer.error_code in (refusal.code, *refusal.of_kafka), ErrorCode(answer.error_code)
        return
    assert answer.error_code == refusal.code, ErrorCode(answer.error_code)
    assert answer.error_message is not None
    assert answer.error_message.startswith(refusal.message)


@pytest.mark.parametrize("case", REFUSED)
def test_a_broken_batch_is_refused_and_nothing_of_it_stored(
    connection: WireConnection, make_topic: MakeTopic, case: str
) -> None:
    topic = make_topic()
    check_refused(produce(connection, topic, REFUSED[case].records), REFUSED[case])
    assert produce(connection, topic, batch()).base_offset == 0


@pytest.mark.parametrize("case", BROKEN_INSIDE)
def test_records_that_cannot_be_read_are_refused(connection: WireConnection, make_topic: MakeTopic, case: str) -> None:
    """Apache Kafka answers most of these with UNKNOWN_SERVER_ERROR, which tells the producer nothing."""
    topic = make_topic()
    check_refused(produce(connection, topic, BROKEN_INSIDE[case].records), BROKEN_INSIDE[case])
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
def test_unknown_partitions_get_the_error_for_them(
    connection: WireConnection, make_topic: MakeTopic, partition: int
) -> None:
    answer = produce(connection, make_topic(), batch(), partition=partition)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_unknown_topics_get_the_error_for_them_and_are_not_created(
    connection: WireConnection, make_topic: MakeTopic
) -> None:
    name = make_topic() + "-unknown"
    assert produce(connection, name, batch()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(connection, name, batch()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_unknown_topic_ids_get_the_error_for_them(connection: WireConnection) -> None:
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
    assert send(0, TWO)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
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
