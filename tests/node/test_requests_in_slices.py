"""What happens between two slices of a request: appends, deletions, a disconnect, a full disk."""

import pytest

from quire.controller import create_topics as create_topics_manager
from quire.network.handler import ConnectionInfo
from quire.pending import Pending
from quire.protocol import codec
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from quire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from quire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from quire.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from quire.protocol.records import Record, build_batch
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request

PARTITIONS = 20


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.node.slices.FIRST_STEPS", 1)
    monkeypatch.setattr("quire.node.slices.STEPS_PER_SLICE", 3)
    monkeypatch.setattr("quire.node.api.fetch.FEW_PARTITIONS", 1)
    monkeypatch.setattr("quire.node.offset_portions.PORTION", 2)
    monkeypatch.setattr("quire.node.partitions.opening.LOGS_PER_TURN", 2)
    monkeypatch.setattr("quire.controller.command_runner._TURN_PORTIONS", 1)


@pytest.fixture
def node() -> SimulatedNode:
    started = SimulatedNode().start()
    started.create_topic("t", partitions=PARTITIONS)
    started.clock.run_for(1000)
    return started


def fetch_of_all(max_wait_ms: int) -> FetchRequest:
    wanted = [FetchPartition(partition=index, partition_max_bytes=1000) for index in range(PARTITIONS)]
    return FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1_000_000, topics=[FetchTopic(topic="t", partitions=wanted)]
    )


def fetched(answer: Pending[bytes | None]) -> FetchResponse:
    assert answer.value is not None
    return codec.decode(FetchResponse, answer.value[5:], 12)


def produce(node: SimulatedNode) -> None:
    batch = bytes(build_batch([Record(0, -1, None, b"v")]))
    node.dispatch(ConnectionInfo(2, "PLAINTEXT", "client:2"), node.frame(produce_request("t", 1, batch), 9))


def test_a_record_that_comes_while_a_fetch_reads_is_not_waited_for(node: SimulatedNode) -> None:
    began_ms = node.clock.monotonic_ms()
    answer = node.send(fetch_of_all(10_000), 12)
    assert not answer.done
    produce(node)  # To partition 0, which was read before.
    node.clock.run_until(lambda: answer.done)
    assert node.clock.monotonic_ms() - began_ms < 1_000
    records = [part.records for topic in fetched(answer).responses for part in topic.partitions if part.records]
    assert len(records) == 1


def test_a_topic_that_is_deleted_while_a_fetch_reads_is_answered_as_unknown(node: SimulatedNode) -> None:
    produce(node)
    answer = node.send(fetch_of_all(0), 12)
    assert not answer.done
    node.node.partitions.leader("t", None, 0).log.close_files()  # As when its topic is deleted.
    node.clock.run_until(lambda: answer.done)
    first = fetched(answer).responses[0].partitions[0]
    assert first.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not first.records


def test_topics_are_deleted_on_disk_when_the_client_gets_its_response(node: SimulatedNode) -> None:
    answer = node.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5, DeleteTopicsResponse)
    assert [each.error_code for each in answer.responses] == [ErrorCode.NONE]
    left = [name for name in node.disk.list_dir("/data") if name.startswith("t-") and not name.endswith("-delete")]
    assert left == []


def test_a_commit_is_finished_though_its_client_has_gone(node: SimulatedNode) -> None:
    node.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4, FindCoordinatorResponse)
    node.clock.run_for(1000)
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=7) for index in range(PARTITIONS)
    ]
    commit = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)])
    reply = node.dispatch(node.info, node.frame(commit, 8))
    assert isinstance(reply, Pending)
    assert reply.on_abandoned is None, "the client's next request waits for it"
    reply.abandon()
    node.clock.run_for(1000)
    asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    (group,) = node.call(asked, 8, OffsetFetchResponse).groups
    assert sum(len(topic.partitions) for topic in group.topics) == PARTITIONS


def creation(count: int) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=f"new-{n}", num_partitions=1, replication_factor=1) for n in range(count)]
    return CreateTopicsRequest(topics=topics, timeout_ms=1000)


def test_a_full_disk_refuses_those_topics_alone_that_were_not_created() -> None:
    node = SimulatedNode(settings={"quire.reserve.bytes": "0"}).start()
    answer = node.send(creation(5), 7)
    node.disk.capacity_bytes = 0
    node.clock.run_for(1000)
    node.disk.capacity_bytes = None
    node.clock.run_until(lambda: answer.done)
    assert answer.value is not None
    codes = {topic.name: topic.error_code for topic in codec.decode(CreateTopicsResponse, answer.value[5:], 7).topics}
    assert set(codes.values()) == {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}
    assert {name for name, code in codes.items() if code == 0} == set(node.node.image.topics_by_name)


def test_a_mistake_of_ours_in_the_middle_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    node = SimulatedNode().start()
    create = create_topics_manager._create

    def broken(image, config, random, topic, settings):  # type: ignore[no-untyped-def]
        if topic.name == "new-3":
            raise KeyError("a bug")
        return create(image, config, random, topic, settings)

    monkeypatch.setattr(create_topics_manager, "_create", broken)
    answer = node.call(creation(5), 7, CreateTopicsResponse)
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.UNKNOWN_SERVER_ERROR}
