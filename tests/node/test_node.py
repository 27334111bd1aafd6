"""A node's life: starting on an empty or a used directory, restarting, stopping, and disks that fail."""

from collections.abc import Callable

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.protocol.messages.produce import ProduceResponse
from quire.protocol.records import iterate_records
from quire.storage.errors import DataDirectoryError
from simulator.disk import DiskCall, SimDisk
from simulator.random import SimRandom
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request

MakeNode = Callable[..., SimulatedNode]


def values_of(node: SimulatedNode, topic: str) -> list[bytes | None]:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(max_bytes=1 << 20, topics=[FetchTopic(topic=topic, partitions=[wanted])])
    (answer,) = node.call(request, 11, FetchResponse).responses[0].partitions
    assert answer.error_code == 0, answer
    assert isinstance(answer.records, memoryview)
    return [record.value for record in iterate_records(answer.records)]


def produce(node: SimulatedNode, topic: str) -> int:
    (answer,) = node.call(produce_request(topic), 9, ProduceResponse).responses[0].partition_responses
    return answer.error_code


def topic_names(node: SimulatedNode) -> list[str | None]:
    return [topic.name for topic in node.call(MetadataRequest(topics=None), 12, MetadataResponse).topics]


@pytest.mark.parametrize("cleanly", [True, False])
def test_a_restart_finds_topics_and_records_again(make_node: MakeNode, cleanly: bool) -> None:
    first = make_node().start()
    first.create_topic("t", partitions=3)
    assert [produce(first, "t") for _ in range(3)] == [0, 0, 0]
    disk = first.stop() if cleanly else first.disk.kill()
    second = make_node(disk, seed=2).start()
    assert topic_names(second) == ["t"]
    assert values_of(second, "t") == [b"v"] * 3
    assert second.node.cluster_id == first.node.cluster_id
    assert produce(second, "t") == 0
    assert len(values_of(second, "t")) == 4


def test_acknowledged_metadata_survives_a_power_cut(make_node: MakeNode) -> None:
    first = make_node().start()
    first.create_topic("kept")
    first.create_topic("dropped")
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="dropped")])
    assert first.call(request, 6, DeleteTopicsResponse).responses[0].error_code == 0
    second = make_node(first.disk.crash(SimRandom(3)), seed=2).start()
    assert topic_names(second) == ["kept"]
    assert produce(second, "kept") == 0


def test_a_clean_stop_makes_everything_durable(make_node: MakeNode) -> None:
    first = make_node().start()
    first.create_topic("t")
    produce(first, "t")
    stopped = first.stop()
    second = make_node(stopped.crash(SimRandom(5)), seed=2).start()
    assert values_of(second, "t") == [b"v"]


def test_producer_ids_are_never_given_twice(make_node: MakeNode) -> None:
    def next_id(node: SimulatedNode) -> int:
        return node.call(InitProducerIdRequest(transactional_id=None), 4, InitProducerIdResponse).producer_id

    first = make_node().start()
    before = {next_id(first) for _ in range(5)}
    second = make_node(first.disk.crash(SimRandom(3)), seed=2).start()
    after = {next_id(second) for _ in range(5)}
    assert len(before) == len(after) == 5
    assert not before & after


def test_a_directory_with_data_but_without_its_name_tag_is_not_taken_for_a_new_one(make_node: MakeNode) -> None:
    first = make_node().start()
    first.create_topic("t")
    disk = first.stop()
    disk.remove("/data/meta.properties")
    with pytest.raises(DataDirectoryError, match=r"no meta\.properties"):
        make_node(disk, seed=2).start()


def test_a_directory_of_another_node_is_refused(make_node: MakeNode) -> None:
    disk = make_node().start().stop()
    with pytest.raises(DataDirectoryError, match="belongs to node 1"):
        make_node(disk, settings={"node.id": "2"}, seed=2).start()


def test_the_log_of_an_unknown_topic_is_kept_out_of_the_way(make_node: MakeNode) -> None:
    first = make_node().start()
    first.create_topic("t")
    produce(first, "t")
    disk = first.stop()
    disk.rename("/data/t-0", "/data/unknown-0")
    second = make_node(disk, seed=2).start()
    names = disk.list_dir("/data")
    assert [name for name in names if name.startswith("unknown-0.") and name.endswith("-stray")]
    assert "unknown-0" not in names
    assert topic_names(second) == ["t"]


def test_a_deleted_topic_may_be_created_again_and_starts_empty(make_node: MakeNode) -> None:
    node = make_node().start()
    node.create_topic("t")
    produce(node, "t")
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")])
    node.call(request, 6, DeleteTopicsResponse)
    node.create_topic("t")
    assert values_of(node, "t") == []
    restarted = make_node(node.disk.kill(), seed=2).start()
    assert values_of(restarted, "t") == []


def test_a_disk_error_takes_its_directory_offline_and_nothing_else(make_node: MakeNode) -> None:
    node = make_node(settings={"log.dirs": "/one,/two"}).start()
    node.create_topic("a")
    node.create_topic("b")
    paths = {topic: node.node.partitions.leader(topic, None, 0).log.path for topic in ("a", "b")}
    assert sorted(path.split("/")[1] for path in paths.values()) == ["one", "two"]
    second = "a" if paths["a"].startswith("/two") else "b"
    first = "b" if second == "a" else "a"
    node.disk.fail_when(lambda operation: operation.path.startswith("/two"))
    assert produce(node, second) == ErrorCode.KAFKA_STORAGE_ERROR
    assert produce(node, second) == ErrorCode.KAFKA_STORAGE_ERROR
    assert produce(node, first) == 0
    assert node.failures == []


def test_a_partition_on_a_failed_disk_stays_offline_when_its_metadata_changes(make_node: MakeNode) -> None:
    node = make_node(settings={"log.dirs": "/one,/two"}).start()
    for topic in ("a", "b"):
        node.create_topic(topic)
    paths = {topic: node.node.partitions.leader(topic, None, 0).log.path for topic in ("a", "b")}
    second = next(topic for topic, path in paths.items() if path.startswith("/two"))
    node.disk.fail_when(lambda operation: operation.path.startswith("/two"))
    assert produce(node, second) == ErrorCode.KAFKA_STORAGE_ERROR
    growing = CreatePartitionsTopic(name=second, count=2, assignments=None)
    node.call(CreatePartitionsRequest(topics=[growing], timeout_ms=1000), 3, CreatePartitionsResponse)
    node.node.stop()
    assert produce(node, second) == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.node.partitions.leader(second, None, 1).log.path.startswith("/one")
    # A stopping node gives up its leaderships; old versions of the response have no field for the new leader.
    node.clock.run_until(lambda: produce(node, second) == ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_no_empty_log_takes_the_place_of_one_whose_disk_failed_during_the_start(make_node: MakeNode) -> None:
    """A power loss removed the `partition.metadata` files; the first one that is written again does not reach the
    disk."""
    two = {"log.dirs": "/one,/two"}
    first = make_node(settings=two).start()
    first.create_topic("t", partitions=4)
    paths = [first.node.partitions.leader("t", None, index).log.path for index in range(4)]
    disk = first.stop()
    for path in paths:
        disk.remove(f"{path}/partition.metadata")
    disk.fail_when(lambda operation: operation.path == f"{paths[0]}/partition.metadata" and operation.kind == "write")
    second = make_node(disk, settings=two, seed=2).start()
    growing = CreatePartitionsTopic(name="t", count=5, assignments=None)
    second.call(CreatePartitionsRequest(topics=[growing], timeout_ms=1000), 3, CreatePartitionsResponse)
    second.clock.run_for(120_000)
    served = {partition.index: partition.log.path for partition in second.node.partitions}
    failed = paths[0].split("/")[1]
    assert {index for index in served if index < 4} == {i for i in range(4) if paths[i].split("/")[1] != failed}
    assert all(served[index] == paths[index] for index in served if index < 4)


@pytest.mark.parametrize("kind", ["write", "sync", "rename", "sync_dir"])
@pytest.mark.parametrize("skipped", range(0, 12, 3))
def test_a_stop_on_a_failing_disk_completes_or_reports_that_it_cannot(
    make_node: MakeNode, kind: str, skipped: int
) -> None:
    node = make_node(settings={"log.dirs": "/one,/two"}).start()
    node.create_topic("a", partitions=2)
    produce(node, "a")
    calls: list[str] = []

    def fails(operation: DiskCall) -> bool:
        if operation.kind == kind:
            calls.append(operation.path)
        return operation.kind == kind and len(calls) > skipped

    stopped = node.node.stop()
    node.disk.fail_when(fails)
    node.clock.run_until(lambda: stopped.done or bool(node.failures))
    assert node.failures or node.disk.open_paths() == []


def test_a_full_disk_is_reported_and_service_resumes_when_there_is_room(make_node: MakeNode) -> None:
    node = make_node().start()
    node.create_topic("t")
    no_space = 28
    node.disk.fail_when(lambda operation: operation.kind == "write" and operation.path.endswith(".log"), no_space)
    assert produce(node, "t") == ErrorCode.KAFKA_STORAGE_ERROR
    assert produce(node, "t") == 0
    assert values_of(node, "t") == [b"v"]


def test_a_topic_created_on_a_full_disk_is_served_when_there_is_room(make_node: MakeNode) -> None:
    node = make_node().start()
    no_space = 28
    node.disk.fail_when(lambda operation: operation.path.startswith("/data/t-0"), no_space)
    node.create_topic("t")
    assert produce(node, "t") == ErrorCode.KAFKA_STORAGE_ERROR
    node.clock.run_for(60_000)
    assert produce(node, "t") == 0
    assert values_of(node, "t") == [b"v"]


def test_a_log_that_could_not_be_opened_stays_where_it_is_and_is_opened_later(make_node: MakeNode) -> None:
    first = make_node(settings={"log.dirs": "/one,/two"}).start()
    first.create_topic("t", partitions=2)
    produce(first, "t")
    path = first.node.partitions.leader("t", None, 0).log.path
    disk = first.stop()
    no_space = 28
    room: list[str] = []
    disk.fail_when(lambda operation: operation.path.startswith(f"{path}/") and not room, no_space, times=1000)
    second = make_node(disk, settings={"log.dirs": "/one,/two"}, seed=2).start()
    assert produce(second, "t") == ErrorCode.KAFKA_STORAGE_ERROR
    room.append("again")
    second.clock.run_for(60_000)
    assert second.node.partitions.leader("t", None, 0).log.path == path
    assert values_of(second, "t") == [b"v"]


def test_two_nodes_cannot_have_one_directory(make_node: MakeNode) -> None:
    disk = SimDisk()
    make_node(disk).start()
    with pytest.raises(DataDirectoryError, match="in use by another process"):
        make_node(disk, seed=2).start()
