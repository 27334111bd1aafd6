"""flush.messages and flush.ms on a whole node: a power loss right after an acknowledgement."""

import errno
from collections.abc import Callable

import pytest

from quire.pending import Pending
from quire.protocol import codec
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from quire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quire.protocol.messages.produce import ProduceResponse
from quire.protocol.records import Record, build_batch, iterate_records
from quire.replication.partition import Partition
from simulator.disk import DiskCall, SimDisk
from simulator.random import SimRandom
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request
from tests.node.test_node import values_of
from tests.storage.flushing.test_log_flush import after_power_loss

MakeNode = Callable[..., SimulatedNode]
Answer = Pending[bytes | None]

ACKS_ALL, ACKS_LEADER = -1, 1
TOPIC, BROKER = 2, 4


def write(node: SimulatedNode, value: bytes = b"v", *, acks: int = ACKS_ALL, sequence: int | None = None) -> Answer:
    """Sends one record to the topic `t`; the answer may be there already."""
    producer = {} if sequence is None else {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence}
    batch = build_batch([Record(0, -1, None, value)], **producer)  # type: ignore[arg-type]
    return node.send(produce_request("t", acks, bytes(batch)), 9)


def error_of(answer: Answer) -> ErrorCode:
    assert answer.done, "it is not answered yet"
    assert answer.value is not None
    response = codec.decode(ProduceResponse, answer.value[5:], 9)
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


def written(node: SimulatedNode, value: bytes = b"v", *, acks: int = ACKS_ALL, sequence: int | None = None) -> None:
    """Sends one record and waits until it is acknowledged."""
    answer = write(node, value, acks=acks, sequence=sequence)
    node.clock.run_until(lambda: answer.done)
    assert error_of(answer) is ErrorCode.NONE


def partition_of(node: SimulatedNode) -> Partition:
    return node.node.partitions.leader("t", None, 0).partition


def values_in_all_segments(node: SimulatedNode) -> list[bytes | None]:
    partition = partition_of(node)
    found: list[Record] = []
    while part := partition.read(
        found[-1].offset + 1 if found else 0, 1 << 20, at_least_one_batch=True, committed_only=False
    ):
        found += iterate_records(part.read())
    return [record.value for record in found]


def alter(node: SimulatedNode, kind: int, name: str, key: str, value: str) -> None:
    resource = AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[AlterableConfig(name=key, config_operation=0, value=value)]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (answer,) = node.call(request, 1, IncrementalAlterConfigsResponse).responses
    assert answer.error_code == 0, answer


def log_syncs(disk: SimDisk) -> list[str]:
    """Collects the segments of `t` that are synced."""
    seen: list[str] = []

    def note(operation: DiskCall) -> bool:
        if operation.kind == "sync" and operation.path.endswith(".log") and "/t-0/" in operation.path:
            seen.append(operation.path)
        return False

    disk.fail_when(note)
    return seen


@pytest.mark.parametrize("acks", [ACKS_ALL, ACKS_LEADER])
@pytest.mark.parametrize("reorder", [False, True], ids=["in order", "sectors in any order"])
def test_with_1_what_is_acknowledged_survives_a_power_loss_right_afterwards(
    make_node: MakeNode, acks: int, reorder: bool
) -> None:
    for acknowledged in range(1, 8):
        node = make_node(seed=acknowledged).start()
        node.create_topic("t", flush_messages="1", index_interval_bytes="0", internal_segment_bytes="200")
        values = [b"%d" % number for number in range(acknowledged)]
        for value in values:
            written(node, value, acks=acks)
        write(node, b"nobody knows")
        disk = node.disk.crash(SimRandom(acknowledged), reorder=reorder)
        found = values_in_all_segments(make_node(disk, seed=99).start())
        assert found[:acknowledged] == values
        assert found[acknowledged:] in ([], [b"nobody knows"])


@pytest.mark.parametrize("seed", range(5))
def test_with_1_a_repeated_batch_is_not_acknowledged_before_the_first_is_on_disk(
    make_node: MakeNode, seed: int
) -> None:
    node = make_node(seed=seed).start()
    node.create_topic("t", flush_messages="1")
    node.jobs.longest_ms = 200  # The first flush of a log takes two jobs, within the second that a client waits.
    answers = [write(node, sequence=0) for _ in range(3)]
    assert not any(answer.done for answer in answers)
    node.clock.run_until(lambda: any(answer.done for answer in answers))
    assert [error_of(answer) for answer in answers] == [ErrorCode.NONE] * 3
    assert values_of(make_node(after_power_loss(node.disk), seed=99).start(), "t") == [b"v"]


def test_without_it_an_acknowledged_record_may_be_lost_with_the_power(make_node: MakeNode) -> None:
    node = make_node().start()
    node.create_topic("t")
    written(node)
    again = make_node(after_power_loss(node.disk), seed=2).start()
    assert partition_of(again).high_watermark == 0


def test_no_client_reads_unflushed_records(make_node: MakeNode) -> None:
    node = make_node().start()
    node.create_topic("t", flush_messages="1")
    written(node, b"first")
    node.jobs.longest_ms = 500
    answer = write(node, b"second")
    assert values_of(node, "t") == [b"first"]
    node.clock.run_until(lambda: answer.done)
    assert values_of(node, "t") == [b"first", b"second"]


def test_fifty_writers_share_one_flush(node: SimulatedNode) -> None:
    node.create_topic("t", flush_messages="1")
    written(node)
    syncs = log_syncs(node.disk)
    answers = [write(node, acks=ACKS_LEADER if number % 2 else ACKS_ALL) for number in range(50)]
    node.clock.run_until(lambda: all(answer.done for answer in answers))
    assert {error_of(answer) for answer in answers} == {ErrorCode.NONE}
    assert len(syncs) <= 2


def test_acks_0_does_not_wait_and_is_still_flushed(node: SimulatedNode) -> None:
    node.create_topic("t", flush_messages="1")
    answer = write(node, acks=0)
    assert answer.done
    node.clock.run_for(100)
    assert partition_of(node).log.recovery_point == 1


@pytest.mark.parametrize("acks", [ACKS_ALL, ACKS_LEADER])
def test_a_sync_that_fails_is_a_storage_error_at_once(node: SimulatedNode, acks: int) -> None:
    node.create_topic("t", flush_messages="1")
    node.disk.fail_when(lambda operation: operation.kind == "sync" and operation.path.endswith(".log"))
    asked_ms = node.clock.monotonic_ms()
    answers = [write(node, acks=acks) for _ in range(3)]
    node.clock.run_until(lambda: all(answer.done for answer in answers))
    assert {error_of(answer) for answer in answers} == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert node.clock.monotonic_ms() - asked_ms < 100
    assert [directory.failure is not None for directory in node.node.partitions.directories()] == [True]


def test_a_flush_without_room_is_a_storage_error_and_the_next_one_covers_its_records(node: SimulatedNode) -> None:
    node.create_topic("t", flush_messages="1")
    node.disk.fail_when(lambda operation: operation.path.endswith("leader-epoch-checkpoint.tmp"), errno.ENOSPC)
    first = write(node, b"first")
    node.clock.run_until(lambda: first.done)
    assert error_of(first) is ErrorCode.KAFKA_STORAGE_ERROR
    written(node, b"second")
    assert values_of(node, "t") == [b"first", b"second"]


def test_records_that_a_full_disk_kept_from_being_flushed_are_flushed_when_there_is_room(
    make_node: MakeNode,
) -> None:
    node = make_node(settings={"log.flush.offset.checkpoint.interval.ms": "1000"}).start()
    node.create_topic("t", flush_messages="1")
    node.disk.fail_when(lambda operation: operation.path.endswith("leader-epoch-checkpoint.tmp"), errno.ENOSPC)
    answer = write(node)
    node.clock.run_until(lambda: answer.done)
    assert partition_of(node).high_watermark == 0
    node.clock.run_for(1100)
    assert partition_of(node).high_watermark == 1


@pytest.mark.parametrize("acks", [ACKS_ALL, ACKS_LEADER])
def test_a_disk_that_takes_longer_than_the_client_waits_is_a_timeout(node: SimulatedNode, acks: int) -> None:
    node.create_topic("t", flush_messages="1")
    node.jobs.longest_ms = 1e6
    asked_ms = node.clock.monotonic_ms()
    answer = write(node, acks=acks)
    node.clock.run_until(lambda: answer.done)
    assert error_of(answer) is ErrorCode.REQUEST_TIMED_OUT
    assert node.clock.monotonic_ms() - asked_ms == pytest.approx(1000)


def test_writes_that_arrive_together_share_one_flush(node: SimulatedNode) -> None:
    node.create_topic("t", flush_messages="1")
    written(node)
    synced = log_syncs(node.disk)
    answers = [write(node) for _ in range(5)]
    node.clock.run_until(lambda: all(answer.done for answer in answers))
    assert [error_of(answer) for answer in answers] == [ErrorCode.NONE] * 5
    assert len(synced) == 1


def test_deleting_the_topic_answers_requests_that_wait_for_its_flush(node: SimulatedNode) -> None:
    node.create_topic("t", flush_messages="1")
    written(node)
    node.jobs.longest_ms = 1e6
    answer = write(node)
    node.clock.run_for(0)
    node.jobs.longest_ms = 5
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")])
    assert node.call(request, 6, DeleteTopicsResponse).responses[0].error_code == 0
    assert error_of(answer) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_stopping_answers_waiting_requests_and_leaves_everything_on_disk(make_node: MakeNode) -> None:
    node = make_node().start()
    node.create_topic("t", flush_messages="1")
    node.jobs.longest_ms = 200
    answer = write(node)
    disk = node.stop()
    assert error_of(answer) in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert values_of(make_node(after_power_loss(disk), seed=2).start(), "t") == [b"v"]


def test_a_change_of_the_topic_takes_effect_at_once(node: SimulatedNode) -> None:
    node.create_topic("t")
    written(node, b"a")
    assert partition_of(node).log.recovery_point == 0
    alter(node, TOPIC, "t", "flush.messages", "1")
    node.clock.run_until(lambda: partition_of(node).log.recovery_point == 1)
    written(node, b"b")
    assert partition_of(node).log.recovery_point == 2
    alter(node, TOPIC, "t", "flush.messages", "1000")
    written(node, b"c")
    assert partition_of(node).log.recovery_point == 2


def test_a_change_for_all_topics_takes_effect_at_once(node: SimulatedNode) -> None:
    node.create_topic("t")
    alter(node, BROKER, "", "log.flush.interval.messages", "1")
    written(node)
    assert partition_of(node).log.recovery_point == 1


@pytest.mark.parametrize(
    ("broker", "topic"),
    [
        ({"log.flush.interval.ms": "500"}, {}),
        ({"log.flush.scheduler.interval.ms": "500"}, {}),
        ({"log.flush.interval.ms": "500", "log.flush.scheduler.interval.ms": "100"}, {}),
        ({}, {"flush_ms": "500"}),
        ({"log.flush.interval.ms": "60000"}, {"flush_ms": "500"}),
    ],
)
def test_by_time_a_log_is_flushed_without_being_asked(
    make_node: MakeNode, broker: dict[str, str], topic: dict[str, str]
) -> None:
    node = make_node(settings=broker).start()
    node.create_topic("t", 1, **topic)
    answer = write(node)
    assert error_of(answer) is ErrorCode.NONE
    assert partition_of(node).log.recovery_point == 0
    node.clock.run_for(500 + 50)
    assert partition_of(node).log.recovery_point == 1


def test_flush_ms_can_be_changed_under_way(node: SimulatedNode) -> None:
    node.create_topic("t")
    written(node)
    alter(node, TOPIC, "t", "flush.ms", "100")
    node.clock.run_for(150)
    assert partition_of(node).log.recovery_point == 1


def test_after_a_kill_readers_find_what_they_read_before_and_it_is_on_disk(make_node: MakeNode) -> None:
    node = make_node().start()
    node.create_topic("t", flush_messages="1")
    written(node, b"acknowledged")
    write(node, b"not yet")
    again = make_node(node.disk.kill(), seed=2).start()
    assert values_of(again, "t") == [b"acknowledged", b"not yet"]
    assert values_of(make_node(after_power_loss(again.disk), seed=3).start(), "t") == [b"acknowledged", b"not yet"]


@pytest.mark.parametrize("after_ms", [0, 1, 5, 20, 60, 100, 150, 200, 400])
def test_a_node_that_is_stopped_while_it_starts_after_a_kill_leaves_everything_on_disk(
    make_node: MakeNode, after_ms: int
) -> None:
    node = make_node().start()
    node.create_topic("t", 3, flush_messages="1")
    written(node)
    again = make_node(node.disk.kill(), seed=2)
    again.jobs.longest_ms = 200
    again.node.start()
    again.clock.run_for(after_ms)
    disk = again.stop()
    assert again.failures == []
    assert values_of(make_node(after_power_loss(disk), seed=3).start(), "t") == [b"v"]


def test_the_checkpoint_never_speaks_of_more_than_is_on_disk(make_node: MakeNode) -> None:
    node = make_node(settings={"log.flush.offset.checkpoint.interval.ms": "20"}).start()
    node.create_topic("t", flush_messages="1")
    for number in range(20):
        written(node)
        assert recovery_point_checkpoint(node.disk) <= number + 1
    node.clock.run_for(100)
    assert recovery_point_checkpoint(node.disk) == 20
    assert recovery_point_checkpoint(after_power_loss(node.disk)) == 20


def recovery_point_checkpoint(disk: SimDisk) -> int:
    path = "/data/recovery-point-offset-checkpoint"
    lines = disk.read_file(path).decode().splitlines() if disk.exists(path) else []
    return next((int(line.split()[2]) for line in lines if line.startswith("t 0 ")), 0)
