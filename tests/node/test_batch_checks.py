"""Produce with batches that take long to check: other requests are served in between, with all guarantees."""

import pytest

from quire.network.handler import CloseConnection, ConnectionInfo
from quire.network.server import Server
from quire.node.partitions import opening
from quire.pending import Pending
from quire.protocol import codec
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from quire.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from quire.protocol.records import Compression, Record, build_batch, iterate_records, read_header
from quire.replication.batch_check import AT_ONCE_BYTES
from tests.network.memory import MemoryNetwork, frame, frames_in
from tests.node.conftest import SimulatedNode
from tests.node.transactional_producer import PROTOCOL_1, PROTOCOL_2, TOPIC, TransactionalProducer

VERSION = 9
LONG = bytes(2 * AT_ONCE_BYTES)


@pytest.fixture
def node() -> SimulatedNode:
    node = SimulatedNode(settings={"transaction.state.log.num.partitions": "1"}).start()
    node.create_topic(TOPIC, 3, max_message_bytes="100000000")
    return node


def batch(value: bytes, compression: Compression = Compression.ZSTD, **options: int) -> bytes:
    return bytes(build_batch([Record(0, -1, None, value)], compression=compression, **options))  # type: ignore[arg-type]


def request(*batches: bytes | None, topic: str = TOPIC, acks: int = -1) -> ProduceRequest:
    parts = [PartitionProduceData(index=index, records=records) for index, records in enumerate(batches)]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=parts)])


def parts_of(answer: bytes | None) -> list[PartitionProduceResponse]:
    assert answer is not None
    return codec.decode(ProduceResponse, answer[5:], VERSION).responses[0].partition_responses


def produced(node: SimulatedNode, pending: Pending[bytes | None]) -> list[tuple[int, int]]:
    """The error and offset of each partition, when the answer is available."""
    node.clock.run_until(lambda: pending.done)
    return [(part.error_code, part.base_offset) for part in parts_of(pending.value)]


def values(node: SimulatedNode, index: int = 0) -> list[int]:
    """The size of each record's value."""
    partition = node.node.partitions.leader(TOPIC, None, index).partition
    data = partition.read(0, 1 << 30, at_least_one_batch=True, committed_only=False)
    return [] if data is None else [len(record.value or b"") for record in iterate_records(data.read())]


def test_a_batch_that_becomes_large_is_checked_in_a_job_while_others_are_served(node: SimulatedNode) -> None:
    long = node.send(request(batch(LONG)), VERSION)
    assert not long.done
    assert node.jobs.unfinished == 1
    short = node.send(request(batch(b"short")), VERSION)
    assert short.done, "nothing has to wait for the long one"
    assert produced(node, short) == [(0, 0)]
    assert produced(node, long) == [(0, 1)]
    assert values(node) == [5, len(LONG)]


@pytest.mark.parametrize("compression", list(Compression))
def test_small_batches_are_checked_at_once(node: SimulatedNode, compression: Compression) -> None:
    pending = node.send(request(*[batch(bytes(100_000), compression)] * 3), VERSION)
    assert pending.done
    assert produced(node, pending) == [(0, 0)] * 3


def test_many_small_batches_of_one_request_are_checked_in_a_job_as_soon_as_it_takes_long(node: SimulatedNode) -> None:
    node.create_topic("wide", 20)
    node.clock.run_for(2 * opening.QUIET_MS)  # until all logs are created
    pending = node.send(request(*[batch(bytes(100_000))] * 20, topic="wide"), VERSION)
    assert not pending.done
    assert produced(node, pending) == [(0, 0)] * 20


def test_a_job_finds_what_is_wrong_too(node: SimulatedNode) -> None:
    broken = bytearray(batch(LONG))
    broken[-1] ^= 1
    pending = node.send(request(bytes(broken), batch(LONG), None), VERSION)
    assert not pending.done
    assert produced(node, pending) == [
        (ErrorCode.CORRUPT_MESSAGE, -1),
        (0, 0),
        (ErrorCode.INVALID_RECORD, -1),
    ]


def test_the_expansion_of_a_request_is_bounded_in_a_job_too(node: SimulatedNode) -> None:
    node.node.expansion_max_bytes = 3 * len(LONG)
    pending = node.send(request(*[batch(LONG[:-100])] * 3), VERSION)
    assert produced(node, pending) == [(0, 0)] * 3
    node.node.expansion_max_bytes = 2 * len(LONG)
    pending = node.send(request(*[batch(LONG[:-100])] * 3), VERSION)
    assert produced(node, pending) == [(0, 1), (0, 1), (ErrorCode.MESSAGE_TOO_LARGE, -1)]


@pytest.mark.parametrize("level", [None, "22"])
def test_recompressing_is_done_in_a_job_if_it_is_long(node: SimulatedNode, level: str | None) -> None:
    if level is None:
        node.create_topic("z", compression_type="zstd")
    else:
        node.create_topic("z", compression_type="zstd", compression_zstd_level=level)
    short = node.send(request(batch(bytes(1000), Compression.NONE), topic="z"), VERSION)
    assert short.done
    long = node.send(request(batch(bytes(100_000), Compression.NONE), topic="z"), VERSION)
    assert not long.done
    assert produced(node, long) == [(0, 1)]
    partition = node.node.partitions.leader("z", None, 0).partition
    data = partition.read(1, 1 << 20, at_least_one_batch=True, committed_only=False)
    assert data is not None
    assert read_header(data.read()).compression is Compression.ZSTD


def test_a_plain_batch_is_walked_in_a_job_if_it_is_huge(node: SimulatedNode) -> None:
    pending = node.send(request(batch(bytes(1_000_000), Compression.NONE)), VERSION)
    assert pending.done
    pending = node.send(request(batch(bytes(20_000_000), Compression.NONE)), VERSION)
    assert not pending.done
    assert produced(node, pending) == [(0, 1)]


def test_a_topic_with_log_append_time_answers_with_it(node: SimulatedNode) -> None:
    node.create_topic("l", message_timestamp_type="LogAppendTime")
    now_ms = node.clock.now_ms()
    pending = node.send(request(batch(LONG), topic="l"), VERSION)
    node.clock.run_until(lambda: pending.done)
    (part,) = parts_of(pending.value)
    assert (part.error_code, part.log_append_time_ms) == (0, now_ms)
    data = node.node.partitions.leader("l", None, 0).partition.read(
        0, 1 << 20, at_least_one_batch=True, committed_only=False
    )
    assert data is not None
    assert read_header(data.read()).max_timestamp == now_ms


def test_retries_of_an_idempotent_producer_are_appended_once(node: SimulatedNode) -> None:
    first = batch(LONG, producer_id=7, producer_epoch=0, base_sequence=0)
    second = batch(b"short", producer_id=7, producer_epoch=0, base_sequence=1)
    pendings = [node.send(request(first), VERSION) for _ in range(3)]
    assert [produced(node, pending)[0] for pending in pendings] == [(0, 0)] * 3
    assert produced(node, node.send(request(second), VERSION)) == [(0, 1)]
    assert values(node) == [len(LONG), 5]


def test_a_topic_that_is_deleted_during_the_check_gets_nothing(node: SimulatedNode) -> None:
    pending = node.send(request(batch(LONG)), VERSION)
    deleted = node.send(DeleteTopicsRequest(topics=[], topic_names=[TOPIC], timeout_ms=1000), 5)
    assert produced(node, pending) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]
    node.clock.run_until(lambda: deleted.done)


def test_a_topic_that_has_its_name_by_now_takes_nothing_either(node: SimulatedNode) -> None:
    pending = node.send(request(batch(LONG)), VERSION)
    partition = node.node.partitions.leader(TOPIC, None, 0).partition
    answer = node.call(DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=1000), 5, DeleteTopicsResponse)
    assert answer.responses[0].error_code == 0
    # The check may end before the topic of the same name exists.
    codes = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    if not pending.done:
        node.create_topic(TOPIC)
        assert node.node.partitions.leader(TOPIC, None, 0).partition is not partition
        codes.append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert values(node) == []
    ((code, offset),) = produced(node, pending)
    assert code in codes and offset == -1


def test_a_leader_that_resigns_during_the_check_appends_nothing(node: SimulatedNode) -> None:
    pending = node.send(request(batch(LONG)), VERSION)
    node.node.partitions.leader(TOPIC, None, 0).partition.leave_role()
    # The metadata still names this node as the leader, so to its clients the log is offline.
    assert produced(node, pending) == [(ErrorCode.KAFKA_STORAGE_ERROR, -1)]


def test_with_acks_0_what_is_refused_closes_the_connection(node: SimulatedNode) -> None:
    broken = bytearray(batch(LONG))
    broken[-1] ^= 1
    good = node.send(request(batch(LONG), acks=0), VERSION)
    assert not good.done
    node.clock.run_until(lambda: good.done)
    assert good.value is None
    reply = node.dispatch(node.info, node.frame(request(batch(LONG), bytes(broken), acks=0), VERSION))
    assert isinstance(reply, Pending)
    node.clock.run_until(lambda: reply.done)
    assert isinstance(reply.value, CloseConnection)
    assert "CORRUPT_MESSAGE" in str(reply.value)


def test_a_check_that_fails_unexpectedly_is_answered(node: SimulatedNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("quire.replication.batch_check.rewrite", fail)
    node.create_topic("z", compression_type="zstd")
    pending = node.send(request(batch(bytes(100_000), Compression.NONE), topic="z"), VERSION)
    assert produced(node, pending) == [(ErrorCode.UNKNOWN_SERVER_ERROR, -1)]


def test_records_stay_where_they_are_while_others_use_the_memory_of_requests(node: SimulatedNode) -> None:
    """This includes records in a buffer that the connection has returned, and those of a disconnected client."""
    network = MemoryNetwork(node.clock)
    node.node.server = server = Server(network, node.node.clock, node.dispatch)
    server.listen("PLAINTEXT", "127.0.0.1", 0)
    node.node.batch_checks.bound(0)
    clients = [network.client() for _ in range(4)]
    sizes = (10, 3000, 200_000, 40)
    for client, size in zip(clients, sizes, strict=True):
        client.send(frame(node.frame(request(batch(bytes([size % 251]) * size, Compression.NONE)), VERSION)))
    assert server.pool.held == len(clients)
    clients[1].hang_up()
    node.clock.run_until(lambda: node.jobs.unfinished == 0)
    node.clock.run_for(10)
    assert (server.pool.held, server.pool.in_use_bytes) == (0, 0)
    data = node.node.partitions.leader(TOPIC, None, 0).partition.read(
        0, 1 << 20, at_least_one_batch=True, committed_only=False
    )
    assert data is not None
    written = {record.value for record in iterate_records(data.read())}
    assert written == {bytes([size % 251]) * size for size in sizes}


def test_requests_of_one_connection_are_appended_in_their_order_even_if_it_breaks(node: SimulatedNode) -> None:
    network = MemoryNetwork(node.clock)
    node.node.server = server = Server(network, node.node.clock, node.dispatch)
    server.listen("PLAINTEXT", "127.0.0.1", 0)
    clients = [network.client() for _ in range(2)]
    batches = [batch(LONG), batch(b"short"), batch(LONG[1:]), batch(b"tiny")]
    for client in clients:
        client.send(b"".join(frame(node.frame(request(each), VERSION)) for each in batches))
    clients[1].hang_up()
    node.clock.run_until(lambda: server.counters.connections == 1 and len(values(node)) == 8)
    node.clock.run_for(10)
    offsets = [parts_of(answer)[0].base_offset for answer in frames_in(clients[0].taken)]
    assert [values(node)[offset] for offset in offsets] == [len(LONG), 5, len(LONG) - 1, 4]
    assert offsets == sorted(offsets)
    others = [size for offset, size in enumerate(values(node)) if offset not in offsets]
    assert others == [len(LONG), 5, len(LONG) - 1, 4]


def long_transactional(producer: TransactionalProducer, sequence: int) -> ProduceRequest:
    made = producer.request(0)
    made.topic_data[0].partition_data[0].records = batch(
        LONG,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        transactional=True,
    )
    return made


@pytest.mark.parametrize("protocol", [PROTOCOL_1, PROTOCOL_2])
def test_a_transaction_that_ends_during_the_check_is_not_opened_again(node: SimulatedNode, protocol: int) -> None:
    producer = TransactionalProducer(node, protocol=protocol).start()
    if protocol == PROTOCOL_1:
        assert producer.add_partitions(0) == [0]
    assert producer.produce(0) == [0]
    usual_ms, node.jobs.longest_ms = node.jobs.longest_ms, 60_000.0
    late = node.send(long_transactional(producer, 1), producer.produce_version)
    node.jobs.longest_ms = usual_ms
    node.info = ConnectionInfo(2, "PLAINTEXT", "client:2")
    producer_id, epoch = producer.producer_id, producer.epoch
    assert producer.end(commit=True) == 0
    partition = node.node.partitions.leader(TOPIC, None, 0).partition
    node.clock.run_until(lambda: partition.last_stable_offset == 2)
    assert not late.done
    node.clock.run_until(lambda: late.done)
    answer = codec.decode(ProduceResponse, (late.value or b"")[5:], producer.produce_version)
    refused = ErrorCode.TRANSACTION_ABORTABLE if protocol == PROTOCOL_1 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert answer.responses[0].partition_responses[0].error_code == refused
    assert not partition.log.producer_state.has_open_transaction(producer_id, epoch)
    assert partition.last_stable_offset == partition.high_watermark == 2


@pytest.mark.parametrize("protocol", [PROTOCOL_1, PROTOCOL_2])
def test_a_long_batch_begins_a_transaction_as_a_short_one_does(node: SimulatedNode, protocol: int) -> None:
    producer = TransactionalProducer(node, protocol=protocol).start()
    if protocol == PROTOCOL_1:
        assert producer.add_partitions(0) == [0]
    answer = node.call(long_transactional(producer, 0), producer.produce_version, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == 0
    partition = node.node.partitions.leader(TOPIC, None, 0).partition
    assert partition.log.producer_state.has_open_transaction(producer.producer_id, producer.epoch)
    assert producer.end(commit=True) == 0
    node.clock.run_for(1000)
    assert partition.last_stable_offset == 2


def test_a_node_that_stops_during_the_check_appends_all_of_it_or_nothing(node: SimulatedNode) -> None:
    node.jobs.longest_ms = 20_000.0
    node.send(request(batch(LONG)), VERSION)
    disk = node.stop()
    node.clock.run_for(60_000)
    again = SimulatedNode(disk).start()
    assert values(again) in ([], [len(LONG)])
