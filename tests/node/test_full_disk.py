"""A node whose only disk is full: it says so, serves what it has, and goes on by itself when there is room."""

import errno
import logging

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.produce import ProduceResponse
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


def test_topics_cannot_be_created_until_there_is_room_and_the_node_goes_on(caplog: pytest.LogCaptureFixture) -> None:
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
