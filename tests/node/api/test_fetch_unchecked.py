"""A fetch of records found on disk at the start: checked in a job, then served, unless they are damaged."""

from quire.pending import Pending
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from quire.protocol.messages.produce import ProduceResponse
from quire.protocol.records.batch import read_header, walk_batches
from simulator.disk import SimDisk
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request

LOG = f"/data/t-0/{0:020d}.log"


def stopped_disk(count: int = 3) -> SimDisk:
    node = SimulatedNode().start()
    node.create_topic("t")
    node.create_topic("u")
    for _ in range(count):
        node.call(produce_request("t"), 9, ProduceResponse)
        node.call(produce_request("u"), 9, ProduceResponse)
    return node.stop()


def request(*topics: str, offset: int = 0, max_wait_ms: int = 500, min_bytes: int = 1) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=topic, partitions=[wanted]) for topic in topics],
    )


def fetched(node: SimulatedNode, *topics: str, offset: int = 0, **options: int) -> list[PartitionData]:
    response = node.call(request(*topics, offset=offset, **options), 12, FetchResponse)
    return [topic.partitions[0] for topic in response.responses]


def offsets(data: PartitionData) -> list[int]:
    assert isinstance(data.records, memoryview)
    return [header.base_offset for header in walk_batches(data.records)]


def damage(disk: SimDisk, number: int) -> None:
    size = read_header(disk.read_file(LOG)).size
    file = disk.open(LOG)
    file.pwritev([b"\xff\xfe"], (number + 1) * size - 2)
    file.close()


def test_the_first_fetch_after_a_start_waits_for_a_check_and_the_next_one_does_not() -> None:
    node = SimulatedNode(stopped_disk()).start()
    answer = node.send(request("t"), 12)
    assert not answer.done, "the loop runs meanwhile"
    node.clock.run_until(lambda: answer.done)
    (data,) = fetched(node, "t")
    assert offsets(data) == [0, 1, 2]
    assert node.send(request("t"), 12).done


def test_a_fetch_that_must_not_wait_for_records_still_waits_for_the_check() -> None:
    node = SimulatedNode(stopped_disk()).start()
    (data,) = fetched(node, "t", max_wait_ms=0)
    assert offsets(data) == [0, 1, 2]


def test_several_partitions_are_checked_together() -> None:
    node = SimulatedNode(stopped_disk()).start()
    first, second = fetched(node, "t", "u")
    assert offsets(first) == offsets(second) == [0, 1, 2]


def test_partitions_that_are_ready_do_not_wait_for_those_that_must_be_checked() -> None:
    node = SimulatedNode(stopped_disk()).start()
    fetched(node, "t")
    answer = node.send(request("t", "u"), 12)
    assert answer.done
    node.clock.run_until(lambda: node.send(request("u"), 12).done)


def test_before_a_damaged_batch_everything_is_served_and_at_it_an_error() -> None:
    disk = stopped_disk()
    damage(disk, 1)
    node = SimulatedNode(disk).start()
    (data,) = fetched(node, "t")
    assert (data.error_code, offsets(data)) == (ErrorCode.NONE, [0])
    (data,) = fetched(node, "t", offset=1)
    assert data.error_code == ErrorCode.CORRUPT_MESSAGE
    assert not data.records
    assert fetched(node, "u")[0].error_code == ErrorCode.NONE
    assert node.failures == []


def test_a_client_that_disconnects_during_a_check_leaves_nothing_behind() -> None:
    node = SimulatedNode(stopped_disk()).start()
    reply = node.dispatch(node.info, node.frame(request("t", min_bytes=1 << 20), 12))
    assert isinstance(reply, Pending)
    reply.abandon()
    node.clock.run_for(1000)
    assert not node.node.partitions.leader("t", None, 0).partition.waiting_fetches
    assert offsets(fetched(node, "t")[0]) == [0, 1, 2]


def test_a_disk_that_fails_during_the_check_is_reported() -> None:
    node = SimulatedNode(stopped_disk()).start()
    answer = node.send(request("t"), 12)
    node.disk.fail_when(lambda operation: operation.kind == "read" and operation.path.endswith(".log"))
    node.clock.run_until(lambda: answer.done)
    (data,) = fetched(node, "t")
    assert data.error_code == ErrorCode.KAFKA_STORAGE_ERROR
