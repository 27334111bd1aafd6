"""Opening partitions: their roles, and topics with hundreds of partitions, which are created while other requests are
served."""

import pytest

from quire.client.connection import FRAME_BYTES_MAX
from quire.metadata.partition_image import NO_LEADER, RECOVERING
from quire.metadata.snapshot import image_of, records_of
from quire.node.partitions import opening
from quire.node.partitions.opening import assign_role
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from quire.protocol.messages.metadata_records import PartitionChangeRecord, PartitionRecord, TopicRecord
from quire.protocol.messages.produce import ProduceResponse
from quire.replication.settings import BATCH_BYTES_MAX
from simulator.random import SimRandom
from tests.node.api.other_nodes import OTHER_ID, beat, register
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


def test_a_snapshot_that_comes_while_the_node_runs_has_its_logs_created_in_turns_too() -> None:
    node = SimulatedNode().start()
    image = node.node.image
    topic_id = b"t" * 16
    partitions = [
        PartitionRecord(partition_id=index, topic_id=topic_id, replicas=[1], isr=[1], leader=1, directories=[bytes(16)])
        for index in range(COUNT)
    ]
    records = [*records_of(image), TopicRecord(name="t", topic_id=topic_id), *partitions]
    node.node.metadata.loader.load_snapshot(image_of(records, image.offset, image.epoch, image.timestamp_ms))
    assert 0 < folders(node) < COUNT / 2
    node.clock.run_until(lambda: folders(node) == COUNT)


def test_new_logs_wait_until_no_more_topics_are_created() -> None:
    node = SimulatedNode().start()
    for number in range(5):
        node.create_topic(f"t-{number}", partitions=100)
        node.clock.run_for(opening.QUIET_MS / 2)
    at_once = folders(node)
    assert at_once == opening.LOGS_PER_TURN, "only those of the first topic"
    node.clock.run_for(2 * opening.QUIET_MS)
    assert folders(node) == 500


def test_the_logs_of_one_topic_of_usual_size_are_created_soon() -> None:
    node = SimulatedNode().start()
    node.create_topic("t", partitions=50)
    assert folders(node) < 50
    node.clock.run_for(2 * opening.FEW_QUIET_MS)
    assert folders(node) == 50


def test_new_logs_do_not_wait_for_ever_while_topics_are_created() -> None:
    node = SimulatedNode().start()
    started_ms = node.clock.monotonic_ms()
    number = 0
    while node.clock.monotonic_ms() < started_ms + opening.LONGEST_WAIT_MS + opening.QUIET_MS:
        node.create_topic(f"t-{number}", partitions=100)
        node.clock.run_for(opening.QUIET_MS / 2)
        number += 1
    assert folders(node) > 10 * opening.LOGS_PER_TURN


def test_a_partition_that_is_requested_before_its_turn_is_opened() -> None:
    node = SimulatedNode().start()
    node.create_topic("t", partitions=COUNT)
    assert written_to(node, COUNT - 1) == ErrorCode.NONE
    assert written_to(node, COUNT) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.clock.run_until(lambda: folders(node) == COUNT)
    assert len(node.node.partitions) == COUNT


def test_a_refused_request_for_many_new_logs_has_them_created_without_a_wait() -> None:
    node = SimulatedNode().start()
    node.create_topic("t", partitions=COUNT)
    refused_ms = node.clock.monotonic_ms()
    with pytest.raises(ApiError, match="are being created: try again"):
        node.node.partitions.check_opened([("t", None, index) for index in range(COUNT)])
    node.clock.run_until(lambda: folders(node) == COUNT)
    assert node.clock.monotonic_ms() < refused_ms + opening.QUIET_MS


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


def test_a_partition_gets_the_role_that_the_metadata_says() -> None:
    node = SimulatedNode().start()
    node.create_topic("t")
    partition = node.node.partitions.leader("t", None, 0).partition
    led = node.node.image.topics_by_name["t"].partitions[0]
    assign_role(partition, led._replace(leader=7, leader_epoch=led.leader_epoch + 1))
    assert partition.leader is None
    assert partition.follower is not None and partition.follower.leader_id == 7
    assign_role(partition, led._replace(leader=NO_LEADER, leader_epoch=led.leader_epoch + 2))
    assert partition.leader is None and partition.follower is None
    assign_role(partition, led._replace(leader_epoch=led.leader_epoch + 3))
    assert partition.leader is not None and partition.leader.leader_epoch == led.leader_epoch + 3
    assert partition.follower is None


def test_a_leader_that_was_elected_unclean_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    node = SimulatedNode().start()
    node.create_topic("t")
    partition = node.node.partitions.leader("t", None, 0).partition
    led = node.node.image.topics_by_name["t"].partitions[0]
    assign_role(partition, led._replace(leader_epoch=led.leader_epoch + 1))
    assert "unclean" not in caplog.text
    unclean = led._replace(leader_epoch=led.leader_epoch + 2, leader_recovery_state=RECOVERING)
    assign_role(partition, unclean)
    assign_role(partition, unclean._replace(partition_epoch=led.partition_epoch + 1))
    assert caplog.text.count("leader elected unclean partition=t-0 epoch=2 end=0") == 1


def moved(node: SimulatedNode, topic: str, index: int, to: int) -> None:
    """The change that a reassignment would write."""
    active = node.node.metadata.active
    assert active is not None
    topic_id = node.node.image.topics_by_name[topic].topic_id
    change = PartitionChangeRecord(
        partition_id=index, topic_id=topic_id, replicas=[to], isr=[to], leader=to, directories=[bytes(16)]
    )
    active._commands.write([change])
    node.clock.run_until(lambda: node.node.image.topics_by_name[topic].partitions[index].leader == to)


def test_a_partition_that_moved_to_another_broker_is_removed_here() -> None:
    node = SimulatedNode().start()
    node.create_topic("t", partitions=2)
    assert written_to(node, 0) == written_to(node, 1) == ErrorCode.NONE
    beat(node, register(node))
    moved(node, "t", 0, OTHER_ID)
    assert written_to(node, 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert written_to(node, 1) == ErrorCode.NONE
    node.clock.run_until(lambda: folders(node) == 1)
    moved(node, "t", 0, node.node.node_id)
    assert written_to(node, 0) == ErrorCode.NONE, "it begins with a new log"
    assert node.node.partitions.leader("t", None, 0).partition.high_watermark == 1


def test_partitions_of_other_brokers_are_not_missing_after_a_start() -> None:
    settings = {"log.dirs": "/data,/two"}
    node = SimulatedNode(settings=settings).start()
    node.create_topic("own")
    beat(node, register(node))
    node.create_topic("t")
    if node.node.image.topics_by_name["t"].partitions[0].leader != OTHER_ID:
        moved(node, "t", 0, OTHER_ID)
    partitions = node.node.partitions
    partitions.directories()[1].is_new = True  # As after a start with a directory that was emptied.
    partitions.take_missing_offline(node.node.image)
    assert written_to(node, 0, "own") == ErrorCode.NONE
    moved(node, "t", 0, node.node.node_id)
    assert written_to(node, 0) == ErrorCode.NONE


def test_a_leader_takes_no_batches_that_its_followers_could_not_copy() -> None:
    node = SimulatedNode().start()
    node.create_topic("t", max_message_bytes=str(2**31 - 1))
    assert node.node.partitions.leader("t", None, 0).partition.settings.max_message_bytes == BATCH_BYTES_MAX
    assert BATCH_BYTES_MAX < FRAME_BYTES_MAX
