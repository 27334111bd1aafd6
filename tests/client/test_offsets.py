import pytest

from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.client.producer import Producer
from quire.protocol.errors import ApiError, ErrorCode
from tests.client.model_cluster import ModelCluster

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def filled() -> ModelCluster:
    """Two partitions on two nodes, with records at 1000, 2000 and 3000 ms in each."""
    model = ModelCluster(nodes=2)
    model.create("t", partitions=2)
    producer = Producer(model.client())
    model.run(producer.prepare("t"))
    for topic_partition in (FIRST, SECOND):
        for timestamp_ms in (1000, 2000, 3000):
            producer.send("t", b"x", partition=topic_partition.partition, timestamp_ms=timestamp_ms)
    model.wait(producer.flush())
    return model


def test_offsets_of_several_leaders_come_together() -> None:
    model = filled()
    cluster = model.client()
    model.run(cluster.refresh(["t"]))
    found = model.run(list_offsets(cluster, {FIRST: EARLIEST, SECOND: LATEST}))
    assert (found[FIRST].offset, found[SECOND].offset) == (0, 3)


@pytest.mark.parametrize(("timestamp_ms", "offset"), [(0, 0), (1000, 0), (1001, 1), (3000, 2), (3001, -1)])
def test_a_time_finds_the_first_record_at_or_after_it(timestamp_ms: int, offset: int) -> None:
    model = filled()
    cluster = model.client()
    model.run(cluster.refresh(["t"]))
    assert model.run(list_offsets(cluster, {FIRST: timestamp_ms}))[FIRST].offset == offset


def test_a_leader_that_moved_is_found() -> None:
    model = filled()
    cluster = model.client()
    model.run(cluster.refresh(["t"]))
    model.move("t", 0, leader=2)
    assert model.run(list_offsets(cluster, {FIRST: LATEST}))[FIRST].offset == 3


def test_retriable_errors_are_retried_and_others_raised() -> None:
    model = filled()
    cluster = model.client(request_timeout_ms=3000)
    model.run(cluster.refresh(["t"]))
    model.refuse("ListOffsets", ErrorCode.OFFSET_NOT_AVAILABLE, count=2)
    assert model.run(list_offsets(cluster, {FIRST: LATEST}))[FIRST].offset == 3
    model.refuse("ListOffsets", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(ApiError) as caught:
        model.run(list_offsets(cluster, {FIRST: LATEST}))
    assert caught.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_patience_ends_with_the_request_timeout() -> None:
    model = filled()
    cluster = model.client(request_timeout_ms=3000)
    model.run(cluster.refresh(["t"]))
    model.refuse("ListOffsets", ErrorCode.LEADER_NOT_AVAILABLE, count=1000)
    with pytest.raises(ApiError) as caught:
        model.run(list_offsets(cluster, {FIRST: LATEST}))
    assert caught.value.code == ErrorCode.LEADER_NOT_AVAILABLE
    assert model.clock.monotonic_ms() < 10_000
