"""Topics with hundreds of partitions: they are created while others are served, and nobody sees one missing."""

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from quire.protocol.messages.produce import ProduceResponse
from simulator.random import SimRandom
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request

COUNT = 200


def folders(node: SimulatedNode, topic: str = "t") -> int:
    return sum(name.startswith(f"{topic}-") and not name.endswith("-delete") for name in node.disk.list_dir("/data"))


def written_to(node: SimulatedNode, index: int, topic: str = "t") -> int:
    request = produce_request(topic)
    request.topic_data[0].partition_data[0].index = index
    (answer,) = node.call(request, 9, ProduceResponse).responses
    return answer.partition_responses[0].error_code


def test_only_some_logs_are_created_before_others_are_served() -> None:
    node = SimulatedNode().start()
    node.create_topic("t", partitions=COUNT)
    assert 0 < folders(node) < COUNT / 2
    node.clock.run_until(lambda: folders(node) == COUNT)
    assert len(node.node.partitions) == COUNT


def test_who_asks_for_a_partition_before_its_turn_gets_it() -> None:
    node = SimulatedNode().start()
    node.create_topic("t", partitions=COUNT)
    assert written_to(node, COUNT - 1) == ErrorCode.NONE
    assert written_to(node, COUNT) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.clock.run_until(lambda: folders(node) == COUNT)
    assert len(node.node.partitions) == COUNT


def test_a_topic_that_is_deleted_before_all_its_logs_are_created_leaves_none() -> None:
    node = SimulatedNode().start()
    node.create_topic("t", partitions=COUNT)
    node.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 3, DeleteTopicsResponse)
    node.clock.run_for(1000)
    assert folders(node) == len(node.node.partitions) == 0
    node.create_topic("t", partitions=COUNT)
    assert written_to(node, COUNT - 1) == ErrorCode.NONE
    node.clock.run_until(lambda: folders(node) == COUNT)


def test_logs_that_a_crash_left_uncreated_are_created_by_the_next_start() -> None:
    node = SimulatedNode().start()
    node.create_topic("t", partitions=COUNT)
    assert folders(node) < COUNT
    for disk in (node.disk.kill(), node.disk.crash(SimRandom(1))):
        again = SimulatedNode(disk, seed=2).start()
        assert len(again.node.partitions) == COUNT
        assert written_to(again, COUNT - 1) == ErrorCode.NONE


def test_a_clean_stop_before_all_logs_are_created_is_one() -> None:
    node = SimulatedNode().start()
    node.create_topic("t", partitions=COUNT)
    again = SimulatedNode(node.stop(), seed=2).start()
    assert len(again.node.partitions) == COUNT
    assert written_to(again, COUNT - 1) == ErrorCode.NONE
