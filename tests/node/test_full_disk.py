"""A node whose only disk is full: it reports that, serves reads, and resumes when there is room."""

import errno
import logging

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from quire.protocol.messages.produce import ProduceResponse
from quire.storage.directory import reserve
from simulator.disk import SimDisk
from simulator.random import SimRandom
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request


def fill(node: SimulatedNode) -> None:
    node.disk.capacity_bytes = 0


def make_room(node: SimulatedNode) -> None:
    node.disk.capacity_bytes = None


def creation(name: str) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=1000)


def create(node: SimulatedNode, name: str) -> int:
    return node.call(creation(name), 7, CreateTopicsResponse).topics[0].error_code


def written(node: SimulatedNode, topic: str) -> int:
    (answer,) = node.call(produce_request(topic), 9, ProduceResponse).responses
    return answer.partition_responses[0].error_code


def test_topics_cannot_be_created_until_there_is_room_and_the_node_keeps_running(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = SimulatedNode().start()
    node.create_topic("before")
    fill(node)
    with caplog.at_level(logging.INFO, "quire.raft"):
        waiting = node.send(creation("first"), 7)
        node.clock.run_for(5_000)
        assert create(node, "second") == ErrorCode.KAFKA_STORAGE_ERROR
        assert not waiting.done
        assert written(node, "before") == ErrorCode.KAFKA_STORAGE_ERROR
        make_room(node)
        node.clock.run_until(lambda: waiting.done)
    assert len([line for line in caplog.messages if line.startswith("the metadata cannot change")]) == 1
    assert written(node, "before") == written(node, "first") == create(node, "third") == ErrorCode.NONE
    again = SimulatedNode(node.disk.crash(SimRandom(3)), seed=2).start()
    assert sorted(again.node.image.topics_by_name) == ["before", "first", "third"]


def test_a_write_that_waits_for_room_is_neither_acknowledged_nor_refused() -> None:
    """The record is lost if the node ends before there is room."""
    node = SimulatedNode().start()
    node.create_topic("t")
    fill(node)
    waiting = node.send(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    node.clock.run_for(5_000)
    assert not waiting.done
    assert delete(node, "t") == create(node, "t") == ErrorCode.KAFKA_STORAGE_ERROR
    make_room(node)
    again = SimulatedNode(node.disk.kill(), seed=2).start()
    assert delete(again, "t") == ErrorCode.NONE


def test_a_node_is_stopped_though_its_disk_is_full() -> None:
    node = SimulatedNode().start()
    node.create_topic("t")
    assert written(node, "t") == ErrorCode.NONE
    fill(node)
    stopped = node.node.stop()
    node.clock.run_until(lambda: stopped.done)
    make_room(node)
    again = SimulatedNode(node.disk.kill(), seed=2).start()
    assert written(again, "t") == ErrorCode.NONE


def test_a_topic_whose_log_found_no_room_is_written_to_soon_after_there_is_some() -> None:
    node = SimulatedNode().start()
    full = True
    node.disk.fail_when(lambda operation: full and "/t-0" in operation.path, errno.ENOSPC, times=1 << 30)
    node.create_topic("t")
    assert written(node, "t") == ErrorCode.KAFKA_STORAGE_ERROR
    full = False
    node.clock.run_for(1_500)
    assert written(node, "t") == ErrorCode.NONE


def filled(disk: SimDisk) -> SimDisk:
    """Limits the disk to what is on it now."""
    disk.capacity_bytes = disk.total_bytes("/data") - disk.free_bytes("/data")
    return disk


def read_back(node: SimulatedNode, topic: str) -> int:
    """How many bytes of the topic's only partition can be read."""
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        topics=[FetchTopic(topic=topic, partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])],
    )
    (answer,) = node.call(request, 12, FetchResponse).responses[0].partitions
    assert answer.error_code == ErrorCode.NONE
    return len(answer.records or b"")


def delete(node: SimulatedNode, topic: str) -> int:
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=1000)
    return node.call(request, 5, DeleteTopicsResponse).responses[0].error_code


@pytest.mark.parametrize("clean", [True, False])
def test_a_node_starts_on_a_full_disk_serves_what_it_has_and_lets_topics_be_deleted(clean: bool) -> None:
    node = SimulatedNode().start()
    node.create_topic("large", file_delete_delay_ms="0")
    node.create_topic("small")
    for _ in range(100):
        assert written(node, "large") == written(node, "small") == ErrorCode.NONE
    stopped = node.stop() if clean else node.disk.kill()
    again = SimulatedNode(filled(stopped), seed=2).start()
    assert again.failures == []
    size = read_back(again, "small")
    assert size > 0
    assert written(again, "small") == ErrorCode.KAFKA_STORAGE_ERROR, "what room there is, is for metadata"
    assert delete(again, "large") == ErrorCode.NONE
    again.clock.run_for(1_000)
    assert written(again, "small") == ErrorCode.KAFKA_STORAGE_ERROR, "the reserve comes first"
    make_room(again)
    assert written(again, "small") == ErrorCode.NONE
    assert again.disk.exists(f"/data/{reserve.FILE_NAME}"), "it is set aside again"
    assert read_back(again, "small") > size
    third = SimulatedNode(filled(again.disk.kill()), seed=3).start()
    assert sorted(third.node.image.topics_by_name) == ["small"]


def test_a_full_disk_that_is_emptied_by_deleting_topics_is_written_to_again() -> None:
    node = SimulatedNode(settings={"quire.reserve.bytes": "5000"}).start()
    node.create_topic("large", file_delete_delay_ms="0")
    node.create_topic("small")
    for _ in range(200):
        assert written(node, "large") == ErrorCode.NONE
    filled(node.disk)
    assert written(node, "small") == ErrorCode.KAFKA_STORAGE_ERROR
    assert delete(node, "large") == ErrorCode.NONE
    node.clock.run_for(1_000)
    assert written(node, "small") == ErrorCode.NONE
    assert node.disk.file_size(f"/data/{reserve.FILE_NAME}") == 5000


def test_a_node_without_a_reserve_waits_for_room_when_it_starts() -> None:
    node = SimulatedNode(settings={"quire.reserve.bytes": "0"}).start()
    node.create_topic("t")
    assert written(node, "t") == ErrorCode.NONE
    again = SimulatedNode(filled(node.stop()), settings={"quire.reserve.bytes": "0"}, seed=2)
    again.node.start()
    again.clock.run_for(10_000)
    assert again.failures == []
    assert not again.node.ready.done
    make_room(again)
    again.clock.run_until(lambda: again.node.ready.done)
    assert written(again, "t") == ErrorCode.NONE


def test_an_epoch_that_finds_no_room_is_written_when_there_is_some() -> None:
    """The file of leader epochs is written in a job, with the first sync of each start."""
    disk = SimulatedNode(settings={"quire.reserve.bytes": "0"}).start().stop()
    again = SimulatedNode(disk, settings={"quire.reserve.bytes": "0"}, seed=2)
    epochs = "__cluster_metadata-0/leader-epoch-checkpoint"
    disk.fail_when(lambda operation: operation.kind == "write" and epochs in operation.path, errno.ENOSPC, times=3)
    again.start()
    assert again.failures == []
