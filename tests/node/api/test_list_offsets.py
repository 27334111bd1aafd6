"""ListOffsets: the special offsets of each version, and long searches by time, during which others are served."""

import logging

import pytest

from quire.node.authorizer import CLUSTER_NAME, AclOperation
from quire.pending import Pending
from quire.protocol import codec
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from quire.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from quire.protocol.messages.produce import ProduceResponse
from quire.protocol.records import Compression, Record, build_batch
from quire.replication.members import Members
from quire.storage.log import Log
from quire.storage.scanning.range_check import NotCheckedError
from quire.storage.segment import lookup
from tests.node.api.denying import deny
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request

FUTURE_MS = 3_000_000
MAX_TIMESTAMP = -3
VERSION = 7


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> SimulatedNode:
    """A log whose first record was far ahead of its time and is deleted."""
    monkeypatch.setattr("quire.storage.time_lookup.timestamp_lookup.AT_ONCE_BYTES", 500)
    node = SimulatedNode().start()
    node.create_topic("t")
    now_ms = node.clock.now_ms()
    for timestamp in (now_ms + FUTURE_MS, *(now_ms + number for number in range(40))):
        records = bytes(build_batch([Record(0, timestamp, None, bytes(50))]))
        (answer,) = node.call(produce_request("t", records=records), 9, ProduceResponse).responses
        assert answer.partition_responses[0].error_code == 0
    partition = node.node.partitions.leader("t", None, 0).partition
    node.node.partitions.delete_records(partition, 1)
    node.clock.run_until(lambda: partition.log_start_offset == 1)
    return node


def request(*timestamps: int) -> ListOffsetsRequest:
    topics = [
        ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)])
        for name, timestamp in zip(("t", "u"), timestamps, strict=False)
    ]
    return ListOffsetsRequest(replica_id=-1, topics=topics)


def answered(node: SimulatedNode, *timestamps: int) -> list[ListOffsetsPartitionResponse]:
    response = node.call(request(*timestamps), VERSION, ListOffsetsResponse)
    return [topic.partitions[0] for topic in response.topics]


def test_a_long_search_is_answered_later_and_rightly(node: SimulatedNode) -> None:
    now_ms = node.clock.now_ms()
    pending = node.send(request(now_ms + 1000), VERSION)
    assert not pending.done, "the loop runs meanwhile"
    (answer,) = answered(node, now_ms + 1000)
    assert (answer.error_code, answer.offset) == (ErrorCode.NONE, -1)
    (answer,) = answered(node, MAX_TIMESTAMP)
    assert (answer.error_code, answer.offset) == (ErrorCode.NONE, 40)


def test_a_request_waits_for_all_its_partitions(node: SimulatedNode) -> None:
    node.create_topic("u")
    records = bytes(build_batch([Record(0, node.clock.now_ms(), None, b"u")]))
    node.call(produce_request("u", records=records), 9, ProduceResponse)
    first, second = answered(node, MAX_TIMESTAMP, MAX_TIMESTAMP)
    assert (first.offset, second.offset) == (40, 0)


def test_a_batch_that_becomes_large_is_opened_in_a_job() -> None:
    node = SimulatedNode().start()
    node.create_topic("t")
    now_ms = node.clock.now_ms()
    records = [Record(0, now_ms, None, bytes(100_000)), Record(1, now_ms + 5, None, b"")]
    packed = bytes(build_batch(records, compression=Compression.ZSTD))
    assert len(packed) < 1000
    node.call(produce_request("t", records=packed), 9, ProduceResponse)
    for timestamp, offset in ((now_ms + 5, 1), (MAX_TIMESTAMP, 1)):
        assert not node.send(request(timestamp), VERSION).done
        assert [answer.offset for answer in answered(node, timestamp)] == [offset]
    partition = node.node.partitions.leader("t", None, 0).partition
    node.node.partitions.delete_records(partition, 1)
    node.clock.run_until(lambda: partition.log_start_offset == 1)
    assert not node.send(request(MAX_TIMESTAMP), VERSION).done
    assert [answer.offset for answer in answered(node, MAX_TIMESTAMP)] == [1]


def test_wrong_indexes_are_rebuilt_in_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "REBUILT_AT_ONCE_BYTES", 0)
    node = SimulatedNode().start()
    node.create_topic("t")
    log = node.node.partitions.leader("t", None, 0).partition.log
    now_ms = node.clock.now_ms()
    for number in range(5):
        records = bytes(build_batch([Record(0, now_ms + number, None, b"")]))
        node.call(produce_request("t", records=records), 9, ProduceResponse)
        log.roll(now_ms)
    for segment in log.segments[:-1]:
        node.disk.open(segment.time_index.path).truncate(5)
        segment.time_index.unload()
        segment._max_timestamp = None  # as after a restart
    assert not node.send(request(now_ms + 3), VERSION).done
    assert [answer.offset for answer in answered(node, now_ms + 3)] == [3]
    assert [answer.offset for answer in answered(node, MAX_TIMESTAMP)] == [4]


def test_indexes_that_stay_wrong_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    node = SimulatedNode().start()
    node.create_topic("t")

    class Rebuild:
        def run(self) -> None:
            pass

        finish = run

        @property
        def subject(self) -> str:
            return "the same"

    def find(*_: object) -> None:
        raise NotCheckedError(Rebuild())

    monkeypatch.setattr(Log, "find_timestamp", find)
    (answer,) = answered(node, 1)
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR


def many(count: int, timestamp: int) -> ListOffsetsRequest:
    parts = [ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in range(count)]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="wide", partitions=parts)])


@pytest.fixture
def wide() -> SimulatedNode:
    """A topic of thirty partitions, each with a batch that is opened in a job."""
    node = SimulatedNode().start()
    node.create_topic("wide", 30)
    records = [Record(0, node.clock.now_ms(), None, bytes(100_000))]
    packed = bytes(build_batch(records, compression=Compression.ZSTD))
    for index in range(30):
        made = produce_request("wide", records=packed)
        made.topic_data[0].partition_data[0].index = index
        node.call(made, 9, ProduceResponse)
    return node


def test_a_request_has_one_long_search_at_a_time(wide: SimulatedNode) -> None:
    assert wide.send(many(30, -1), VERSION).done, "landmarks are known"
    long, most = wide.send(many(30, 0), VERSION), 0
    while not long.done:
        most = max(most, wide.jobs.unfinished)
        wide.clock.step()
    assert most == 1
    assert long.value is not None
    (topic,) = codec.decode(ListOffsetsResponse, long.value[5:], VERSION).topics
    assert [(part.error_code, part.offset) for part in topic.partitions] == [(0, 0)] * 30


def test_a_request_that_is_given_up_searches_no_more(wide: SimulatedNode) -> None:
    reply = wide.dispatch(wide.info, wide.frame(many(30, 0), VERSION))
    assert isinstance(reply, Pending)
    reply.abandon()
    assert wide.jobs.unfinished == 1
    wide.clock.run_until(lambda: wide.jobs.unfinished == 0)
    wide.clock.run_for(100)
    assert wide.jobs.unfinished == 0
    assert not reply.done


def test_a_topic_that_is_deleted_during_the_search_is_unknown(node: SimulatedNode) -> None:
    pending = node.send(request(node.clock.now_ms() + 1000), VERSION)
    node.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 3, DeleteTopicsResponse)
    node.clock.run_until(lambda: pending.done)
    assert pending.value is not None
    (topic,) = codec.decode(ListOffsetsResponse, pending.value[5:], VERSION).topics
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert node.failures == []


def test_a_search_that_a_change_of_leaders_overtakes_is_refused(node: SimulatedNode) -> None:
    pending = node.send(request(node.clock.now_ms() + 1000), VERSION)
    node.node.partitions.leader("t", None, 0).partition.become_follower(2, 9)
    node.clock.run_until(lambda: pending.done)
    assert pending.value is not None
    (topic,) = codec.decode(ListOffsetsResponse, pending.value[5:], VERSION).topics
    assert topic.partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.fixture
def empty() -> SimulatedNode:
    node = SimulatedNode().start()
    node.create_topic("t")
    return node


@pytest.mark.parametrize(("timestamp", "version", "code"), [(-3, 6, 35), (-3, 7, 0), (-7, 11, 35), (-2, 1, 0)])
def test_each_special_timestamp_is_answered_from_its_first_version_on(
    empty: SimulatedNode, timestamp: int, version: int, code: int
) -> None:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[wanted])])
    (topic,) = empty.call(request, version, ListOffsetsResponse).topics
    assert topic.partitions[0].error_code == code


def test_a_partition_named_twice_is_refused(empty: SimulatedNode) -> None:
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (0, 1, 1)]
    wanted = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=partitions)])
    (topic,) = empty.call(wanted, VERSION, ListOffsetsResponse).topics
    assert [(part.partition_index, part.error_code) for part in topic.partitions] == [
        (0, ErrorCode.NONE),
        (1, ErrorCode.INVALID_REQUEST),
        (1, ErrorCode.INVALID_REQUEST),
    ]


def test_a_topic_that_may_not_be_described_is_refused(empty: SimulatedNode) -> None:
    deny(empty, (AclOperation.DESCRIBE, "t"))
    (answer,) = answered(empty, -1)
    assert (answer.error_code, answer.offset) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1)


LOG_END, COMMITTED = 1, 0


def latest_for(node: SimulatedNode, replica_id: int) -> tuple[ErrorCode, int]:
    """Where a partition ends whose only record is not committed, because replica 2 does not have it."""
    leader = node.node.partitions.leader("t", None, 0)
    if leader.log.end_offset == 0:
        leader.followers.change_members(Members((1, 2), (1, 2), 1))
        node.send(produce_request("t"), 9)
    asked = request(-1)
    asked.replica_id = replica_id
    asked.topics[0].partitions[0].current_leader_epoch = 0
    part = node.call(asked, VERSION, ListOffsetsResponse).topics[0].partitions[0]
    return ErrorCode(part.error_code), part.offset


def test_only_a_replica_that_follows_learns_where_the_whole_log_ends(
    empty: SimulatedNode, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "quire.requests")
    assert latest_for(empty, -1) == (ErrorCode.NONE, COMMITTED)
    assert latest_for(empty, 2) == (ErrorCode.NONE, LOG_END)
    for no_follower in (1, 3):
        assert latest_for(empty, no_follower) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1)
    assert "refused ListOffsets from node 3 at client:1 with UNKNOWN_LEADER_EPOCH" in caplog.text


def test_a_client_that_may_not_act_as_a_node_is_no_replica(empty: SimulatedNode) -> None:
    deny(empty, (AclOperation.CLUSTER_ACTION, CLUSTER_NAME))
    assert latest_for(empty, 2) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1)
    assert latest_for(empty, -1) == (ErrorCode.NONE, COMMITTED)
