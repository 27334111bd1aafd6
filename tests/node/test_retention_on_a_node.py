"""Retention on a node: periodically for all partitions, and at once for those whose settings change."""

import pytest

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from quire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quire.protocol.messages.produce import ProduceResponse
from quire.protocol.records import Record, build_batch
from quire.replication.partition import Partition
from simulator.random import SimRandom
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request

SET = 0
TOPIC = 2
BROKER = 4
EVERY_10_S = {"log.retention.check.interval.ms": "10000"}
SECONDS = 1000


def node_with_records(
    count: int, topic: dict[str, str] | None = None, settings: dict[str, str] = EVERY_10_S
) -> SimulatedNode:
    """Batches of 1 KB, four to a segment."""
    node = SimulatedNode(settings=settings).start()
    node.create_topic("t")
    alter(node, TOPIC, "t", {"internal.segment.bytes": "4400", **(topic or {})})
    fill(node, count)
    return node


def fill(node: SimulatedNode, count: int) -> None:
    for _ in range(count):
        records = bytes(build_batch([Record(0, node.clock.now_ms(), None, bytes(1000))]))
        (answer,) = node.call(produce_request("t", records=records), 9, ProduceResponse).responses
        assert answer.partition_responses[0].error_code == 0


def alter(node: SimulatedNode, kind: int, name: str, settings: dict[str, str]) -> None:
    configs = [AlterableConfig(name=key, config_operation=SET, value=value) for key, value in settings.items()]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (answer,) = node.call(request, 1, IncrementalAlterConfigsResponse).responses
    assert answer.error_code == 0, answer


def partition(node: SimulatedNode) -> Partition:
    return node.node.partitions.leader("t", None, 0).partition


def test_old_segments_are_deleted_when_they_expire() -> None:
    node = node_with_records(10, {"retention.ms": "60000"})
    node.clock.run_for(50 * SECONDS)
    assert partition(node).log_start_offset == 0
    fill(node, 1)
    node.clock.run_for(21 * SECONDS)
    assert partition(node).log_start_offset == 8, "the rest is in a segment with a young record"
    node.clock.run_for(60 * SECONDS)
    assert (partition(node).log_start_offset, partition(node).high_watermark) == (11, 11)
    fill(node, 1)
    assert partition(node).high_watermark == 12


@pytest.mark.parametrize(
    ("setting", "value", "start_offset"),
    [("retention.bytes", "5000", 4), ("retention.bytes", "0", 10), ("retention.ms", "1", 10)],
)
def test_a_changed_setting_of_a_topic_takes_effect_at_once(setting: str, value: str, start_offset: int) -> None:
    node = node_with_records(10)
    node.clock.run_for(2)
    alter(node, TOPIC, "t", {setting: value})
    node.clock.run_for(100)
    assert partition(node).log_start_offset == start_offset


def test_a_changed_default_of_the_brokers_takes_effect_at_once() -> None:
    node = node_with_records(10)
    alter(node, BROKER, "", {"log.retention.bytes": "5000"})
    node.clock.run_for(100)
    assert partition(node).log_start_offset == 4


def test_topics_that_are_only_compacted_lose_nothing_to_retention() -> None:
    node = node_with_records(10)
    alter(node, TOPIC, "t", {"cleanup.policy": "compact", "retention.ms": "1", "retention.bytes": "1"})
    node.clock.run_for(60 * SECONDS)
    assert partition(node).log_start_offset == 0


def test_a_node_that_has_just_started_does_not_wait_for_a_whole_interval() -> None:
    daily = {"log.retention.check.interval.ms": "86400000"}
    first = node_with_records(10, {"retention.ms": "1000"}, daily)
    again = SimulatedNode(first.stop(), daily, seed=2).start()
    again.clock.run_for(31 * SECONDS)
    assert partition(again).log_start_offset == 10


def test_a_start_that_was_seen_survives_a_power_cut() -> None:
    node = node_with_records(10)
    alter(node, TOPIC, "t", {"retention.bytes": "5000"})
    node.clock.run_until(lambda: partition(node).log_start_offset == 4)
    again = SimulatedNode(node.disk.crash(SimRandom(1)), EVERY_10_S, seed=2).start()
    assert partition(again).log_start_offset == 4


def test_a_fetch_of_deleted_records_is_out_of_range() -> None:
    node = node_with_records(10, {"retention.bytes": "5000"})
    node.clock.run_for(40 * SECONDS)
    wanted = FetchPartition(partition=0, fetch_offset=3, partition_max_bytes=1 << 20)
    request = FetchRequest(max_bytes=1 << 20, topics=[FetchTopic(topic="t", partitions=[wanted])])
    (answer,) = node.call(request, 11, FetchResponse).responses[0].partitions
    assert (answer.error_code, answer.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_hundreds_of_partitions_are_looked_at_in_many_turns() -> None:
    node = SimulatedNode(settings=EVERY_10_S).start()
    node.create_topic("t", partitions=300)
    node.clock.run_until(lambda: len(node.node.partitions) == 300)
    node.node.retention.look_at_all()
    node.node.retention.look_at_all()
    turns = 0

    def others_run() -> None:
        nonlocal turns
        if node.node.retention.is_busy:
            turns += 1
            node.clock.call_soon(others_run)

    node.clock.call_soon(others_run)
    node.clock.run_for(1)
    assert turns >= 300 / 16 - 1
    assert not node.node.retention.is_busy


def test_a_partition_that_is_deleted_during_retention_is_ignored() -> None:
    node = node_with_records(10)
    held = partition(node)
    node.node.retention.look_at(held)
    node.node.partitions.metadata_updates.remove(node.node.image.topics_by_name["t"], 0)
    node.clock.run_for(100)
    assert not node.node.retention.is_busy
