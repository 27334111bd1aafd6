"""Fetch on the wire, outside sessions: limits, waiting, leader epochs, errors."""

import threading
import time

import pytest
from confluent_kafka.admin import AdminClient

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.testing import WireConnection
from tests.wire.batches import batch
from tests.wire.clients import WAIT_S, eventually
from tests.wire.conftest import MakeTopic
from tests.wire.raw import MEGABYTE, fetch, fetch_request, produce, records_of, topic_metadata

THREE = [b"x" * 1000] * 3
BATCH = batch(THREE)
LONG_WAIT_MS = 120_000
PROMPTLY_S = LONG_WAIT_MS / 4000
"""Enough for a busy machine, and far less than a fetch would wait."""


@pytest.fixture
def filled(connection: WireConnection, make_topic: MakeTopic) -> str:
    """A topic with four batches of three records."""
    topic = make_topic()
    for _ in range(4):
        assert produce(connection, topic, BATCH).error_code == ErrorCode.NONE
    return topic


def stored(first: int, last: int = 3) -> bytes:
    return b"".join(batch(THREE, base_offset=3 * n, leader_epoch=0) for n in range(first, last + 1))


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_gives_records_and_offsets(connection: WireConnection, filled: str, version: int) -> None:
    found = fetch(connection, filled, version=version)
    assert found.error_code == ErrorCode.NONE
    assert records_of(found) == stored(0)
    assert (found.high_watermark, found.last_stable_offset) == (12, 12)
    assert found.log_start_offset == (0 if version >= 5 else -1)


@pytest.mark.parametrize("version", [4, 7, 12, 13, 18])
def test_records_are_empty_and_never_null(connection: WireConnection, make_topic: MakeTopic, version: int) -> None:
    found = fetch(connection, make_topic(), version=version)
    assert records_of(found) == b""
    assert (found.error_code, found.high_watermark, found.last_stable_offset) == (ErrorCode.NONE, 0, 0)


@pytest.mark.parametrize(("offset", "first"), [(0, 0), (3, 1), (4, 1), (5, 1), (11, 3)])
def test_an_offset_inside_a_batch_gives_the_whole_batch(
    connection: WireConnection, filled: str, offset: int, first: int
) -> None:
    assert records_of(fetch(connection, filled, offset)) == stored(first)


@pytest.mark.parametrize("limit", ["max_bytes", "partition_max_bytes"])
def test_the_first_batch_is_sent_however_small_the_limit(connection: WireConnection, filled: str, limit: str) -> None:
    limits = {limit: 1}
    assert records_of(fetch(connection, filled, **limits)) == stored(0, 0)


def test_a_limit_ends_the_records(connection: WireConnection, filled: str) -> None:
    """A response may end in the middle of a batch, as with Apache Kafka, but never has more bytes than requested."""
    records = records_of(fetch(connection, filled, partition_max_bytes=7000))
    assert 2 * len(BATCH) <= len(records) <= 7000
    assert stored(0).startswith(records)


def test_the_limit_of_a_request_is_shared_by_its_partitions(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    for partition in range(3):
        produce(connection, topic, BATCH, partition=partition)
    asked = [FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=MEGABYTE) for n in range(3)]
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=1000, topics=[FetchTopic(topic=topic, partitions=asked)]
    )
    answer = connection.call(request, 12, FetchResponse)
    sizes = [len(records_of(partition)) for partition in answer.responses[0].partitions]
    assert sizes == [len(BATCH), 0, 0]


@pytest.mark.parametrize("offset", [13, 1_000_000, -1])
def test_an_offset_outside_the_log_is_out_of_range(connection: WireConnection, filled: str, offset: int) -> None:
    found = fetch(connection, filled, offset, max_wait_ms=LONG_WAIT_MS)
    assert found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert records_of(found) == b""


def test_leader_epochs_are_checked(connection: WireConnection, filled: str) -> None:
    assert fetch(connection, filled, leader_epoch=0).error_code == ErrorCode.NONE
    assert fetch(connection, filled, leader_epoch=1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_unknown_topics_partitions_and_ids(connection: WireConnection, filled: str) -> None:
    assert fetch(connection, filled, partition=7).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(connection, f"{filled}-unknown").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    request = fetch_request("")
    request.topics[0].topic_id = b"0123456789abcdef"
    for version in (13, 18):
        answer = connection.call(request, version, FetchResponse)
        assert answer.error_code == ErrorCode.NONE
        assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_fetch_waits_as_long_as_it_says(connection: WireConnection, filled: str) -> None:
    began = time.monotonic()
    found = fetch(connection, filled, 12, max_wait_ms=200)
    assert time.monotonic() - began >= 0.19
    assert (found.error_code, records_of(found)) == (ErrorCode.NONE, b"")


def test_too_little_is_given_when_the_time_is_up(connection: WireConnection, filled: str) -> None:
    found = fetch(connection, filled, 9, max_wait_ms=100, min_bytes=MEGABYTE)
    assert records_of(found) == stored(3)


def test_a_waiting_fetch_is_answered_when_there_is_enough(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with WireConnection(bootstrap) as reader, WireConnection(bootstrap) as writer:
        waits = reader.send(fetch_request(topic, max_wait_ms=LONG_WAIT_MS, min_bytes=len(BATCH) + 1), 12)
        produce(writer, topic, BATCH)
        reader.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            reader.socket.recv(1)
        reader.socket.settimeout(PROMPTLY_S)
        produce(writer, topic, BATCH)
        answer = reader.receive(FetchResponse, 12, waits)
    assert records_of(answer.responses[0].partitions[0]) == stored(0, 1)


def test_an_error_in_one_partition_ends_the_wait(connection: WireConnection, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    request = fetch_request(topic, 0, max_wait_ms=LONG_WAIT_MS)
    request.topics[0].partitions.append(FetchPartition(partition=1, fetch_offset=5, partition_max_bytes=MEGABYTE))
    connection.socket.settimeout(PROMPTLY_S)
    answer = connection.call(request, 12, FetchResponse)
    codes = {partition.partition_index: partition.error_code for partition in answer.responses[0].partitions}
    assert codes == {0: ErrorCode.NONE, 1: ErrorCode.OFFSET_OUT_OF_RANGE}


def test_a_waiting_fetch_blocks_no_other_request(bootstrap: str, filled: str) -> None:
    with WireConnection(bootstrap) as reader, WireConnection(bootstrap, timeout_s=PROMPTLY_S) as other:
        waits = reader.send(fetch_request(filled, 12, max_wait_ms=LONG_WAIT_MS), 12)
        other.call(MetadataRequest(topics=[]), 12, MetadataResponse)
        produce(other, filled, BATCH)
        reader.receive(FetchResponse, 12, waits)


def test_answers_behind_a_waiting_fetch_keep_their_order(connection: WireConnection, filled: str) -> None:
    waits = connection.send(fetch_request(filled, 12, max_wait_ms=150), 12)
    follows = connection.send(MetadataRequest(topics=[]), 12)
    connection.receive(FetchResponse, 12, waits)
    connection.receive(MetadataResponse, 12, follows)


def test_a_client_that_leaves_while_it_waits_is_forgotten(bootstrap: str, filled: str) -> None:
    for _ in range(20):
        with WireConnection(bootstrap) as reader:
            reader.send(fetch_request(filled, 12, max_wait_ms=LONG_WAIT_MS), 12)
    with WireConnection(bootstrap) as writer:
        assert produce(writer, filled, BATCH).base_offset == 12
        assert records_of(fetch(writer, filled, 12)) == stored(4, 4)


def test_many_readers_wait_for_one_record(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    connections = [WireConnection(bootstrap, timeout_s=PROMPTLY_S) for _ in range(30)]
    try:
        waits = [each.send(fetch_request(topic, max_wait_ms=LONG_WAIT_MS), 12) for each in connections]
        with WireConnection(bootstrap) as writer:
            produce(writer, topic, BATCH)
        for each, sent in zip(connections, waits, strict=True):
            answer = each.receive(FetchResponse, 12, sent)
            assert records_of(answer.responses[0].partitions[0]) == stored(0, 0)
    finally:
        for each in connections:
            each.close()


def test_a_deleted_topics_readers_do_not_wait_for_it(
    admin: AdminClient, connection: WireConnection, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    topic_id = topic_metadata(connection, topic).topic_id
    admin.delete_topics([topic])[topic].result(PROMPTLY_S)
    request = fetch_request("", max_wait_ms=LONG_WAIT_MS)
    request.topics[0].topic_id = topic_id
    connection.socket.settimeout(PROMPTLY_S)

    def is_unknown() -> bool:
        answer = connection.call(request, 13, FetchResponse)
        return answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID

    eventually(is_unknown)


def test_read_committed_readers_get_a_list_of_aborted_transactions(connection: WireConnection, filled: str) -> None:
    request = fetch_request(filled)
    request.isolation_level = 1
    found = connection.call(request, 12, FetchResponse).responses[0].partitions[0]
    assert found.aborted_transactions == []
    assert records_of(found) == stored(0)


def test_readers_and_a_writer_on_many_threads_see_one_order(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    total = 300
    seen: list[bytes] = []

    def read() -> None:
        with WireConnection(bootstrap) as reader:
            got = b""
            offset = 0
            while offset < total:
                records = records_of(fetch(reader, topic, offset, max_wait_ms=500))
                got += records
                offset += len(records) // len(batch([b"0000"]))
            seen.append(got)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    with WireConnection(bootstrap) as writer:
        for number in range(total):
            assert produce(writer, topic, batch([b"%04d" % number])).base_offset == number
    for reader in readers:
        reader.join(WAIT_S)
    expected = b"".join(batch([b"%04d" % n], base_offset=n, leader_epoch=0) for n in range(total))
    assert seen == [expected] * 4
