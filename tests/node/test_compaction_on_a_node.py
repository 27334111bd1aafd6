"""Compaction on a node: dirty logs are found and cleaned automatically, whatever else happens to them."""

import pytest

from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from quire.protocol.messages.produce import ProduceResponse
from quire.protocol.records import Record, build_batch
from quire.replication.partition import Partition
from quire.storage.directory import checkpoints
from simulator.disk import SimDisk
from simulator.disk_calls import DiskCall
from tests.node.conftest import SimulatedNode
from tests.node.test_dispatch import produce_request
from tests.node.test_retention_on_a_node import TOPIC, alter
from tests.storage.batches import read
from tests.storage.cleaning.compaction import entries_of

SECONDS = 1000
SOON = {"log.cleaner.backoff.ms": "1000"}
SLOWLY = {**SOON, "log.cleaner.io.max.bytes.per.second": "30000"}
COMPACTED = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01"}
CHECKPOINT = f"/data/{checkpoints.CLEANED_OFFSETS}"
FOLDER = "/data/t-0"


def node_with_keys(count: int, settings: dict[str, str] = SOON, **topic: str) -> SimulatedNode:
    """Records of 1 KB with ten keys, four to a segment."""
    node = SimulatedNode(settings=settings).start()
    node.create_topic("t", 1, **{"internal_segment_bytes": "4400", **COMPACTED, **topic})
    fill(node, count)
    return node


def fill(node: SimulatedNode, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        key = b"key %d" % (number % 10)
        records = bytes(build_batch([Record(0, node.clock.now_ms(), key, b"%d" % number + bytes(1000))]))
        (answer,) = node.call(produce_request("t", records=records), 9, ProduceResponse).responses
        assert answer.partition_responses[0].error_code == 0


def partition(node: SimulatedNode) -> Partition:
    return node.node.partitions.leader("t", None, 0).partition


def offsets(node: SimulatedNode) -> list[int]:
    return [offset for offset, _, _ in entries_of(partition(node).log)]


def cleaned_offset(disk: SimDisk) -> int | None:
    return checkpoints.read_offsets(disk, CHECKPOINT).get(("t", 0))


def test_a_dirty_log_is_compacted_after_a_while() -> None:
    node = node_with_keys(50)
    node.clock.run_for(5 * SECONDS)
    assert offsets(node) == list(range(38, 50)), "the last two are in the active segment, whose keys do not count yet"
    assert cleaned_offset(node.disk) == 48
    assert (partition(node).log_start_offset, partition(node).high_watermark) == (0, 50)


def test_no_cleaner_no_compaction() -> None:
    node = node_with_keys(50, {**SOON, "log.cleaner.enable": "false"})
    node.clock.run_for(20 * SECONDS)
    assert len(offsets(node)) == 50


def test_logs_that_are_clean_enough_are_not_compacted() -> None:
    node = node_with_keys(50, min_cleanable_dirty_ratio="0.5")
    node.clock.run_for(3 * SECONDS)
    fill(node, 8, first=50)
    node.clock.run_for(10 * SECONDS)
    assert cleaned_offset(node.disk) == 48
    fill(node, 8, first=58)
    node.clock.run_for(10 * SECONDS)
    assert cleaned_offset(node.disk) == 64


def test_records_are_not_compacted_until_they_are_old_enough() -> None:
    node = node_with_keys(50, min_compaction_lag_ms="60000")
    node.clock.run_for(50 * SECONDS)
    assert len(offsets(node)) == 50
    node.clock.run_for(20 * SECONDS)
    assert len(offsets(node)) == 12


def test_overdue_logs_are_compacted_however_clean_the_log_and_active_the_segment() -> None:
    node = node_with_keys(50, min_cleanable_dirty_ratio="1", max_compaction_lag_ms="60000")
    node.clock.run_for(50 * SECONDS)
    assert len(offsets(node)) == 50
    node.clock.run_for(20 * SECONDS)
    assert offsets(node) == list(range(40, 50))


def test_after_a_restart_cleaning_continues_where_it_was() -> None:
    first = node_with_keys(50)
    first.clock.run_for(5 * SECONDS)
    again = SimulatedNode(first.stop(), SOON, seed=2).start()
    assert offsets(again) == list(range(38, 50))
    fill(again, 4, first=50)
    again.clock.run_for(5 * SECONDS)
    assert cleaned_offset(again.disk) == 52
    assert offsets(again) == [*range(42, 54)]


def is_cleaning(node: SimulatedNode) -> bool:
    return any(name.endswith(".cleaned") for name in node.disk.list_dir(FOLDER))


@pytest.mark.parametrize("later_ms", range(0, 3000, 100))
def test_a_node_that_stops_while_it_cleans_leaves_nothing_half_done(later_ms: int) -> None:
    node = node_with_keys(50, SLOWLY)
    node.clock.run_until(lambda: is_cleaning(node))
    node.clock.run_for(later_ms)
    disk = node.stop()
    assert disk.open_paths() == []
    assert [name for name in disk.list_dir(FOLDER) if name.endswith((".cleaned", ".swap"))] == []
    again = SimulatedNode(disk, {"log.cleaner.enable": "false"}, seed=2).start()
    assert offsets(again)[-10:] == list(range(40, 50))


@pytest.mark.parametrize("later_ms", range(0, 1000, 100))
def test_a_topic_can_be_deleted_while_it_is_cleaned_and_created_again(later_ms: int) -> None:
    node = node_with_keys(50, SLOWLY)
    node.clock.run_until(lambda: is_cleaning(node))
    node.clock.run_for(later_ms)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000)
    assert node.call(request, 6, DeleteTopicsResponse).responses[0].error_code == 0
    node.create_topic("t", 1, **{"internal_segment_bytes": "4400", **COMPACTED})
    assert cleaned_offset(node.disk) is None
    fill(node, 21)
    node.clock.run_for(15 * SECONDS)
    assert offsets(node) == list(range(10, 21))
    assert not is_cleaning(node)
    assert node.failures == []


def test_compaction_and_deletion_go_together() -> None:
    node = node_with_keys(50, {**SOON, "log.retention.check.interval.ms": "5000"}, cleanup_policy="compact,delete")
    alter(node, TOPIC, "t", {"retention.ms": "60000"})
    node.clock.run_for(10 * SECONDS)
    assert len(offsets(node)) == 12
    node.clock.run_for(100 * SECONDS)
    assert (partition(node).log_start_offset, offsets(node)) == (50, [])
    fill(node, 30, first=50)
    node.clock.run_for(10 * SECONDS)
    assert [offset for offset in offsets(node) if offset < 78] == list(range(68, 78))


def test_a_reader_in_an_old_segment_is_not_disturbed() -> None:
    node = node_with_keys(50)
    part = partition(node).read(0, 1 << 20, at_least_one_batch=True, committed_only=False)
    assert part is not None
    before = part.read()
    node.clock.run_for(5 * SECONDS)
    assert len(offsets(node)) == 12
    assert part.read() == before
    node.clock.run_for(70 * SECONDS)
    assert [name for name in node.disk.list_dir(FOLDER) if name.endswith(".deleted")] == []


def test_a_damaged_log_is_logged_once_and_the_others_are_cleaned(caplog: pytest.LogCaptureFixture) -> None:
    node = node_with_keys(50, {"log.cleaner.backoff.ms": "1000000"})
    node.create_topic("u", 1, **{"internal_segment_bytes": "4400", **COMPACTED})
    file = node.disk.open(f"{FOLDER}/00000000000000000008.log")
    file.pwritev([b"\xff"], 300)
    file.close()
    alter(node, 4, "", {"log.cleaner.backoff.ms": "1000"})
    node.node.cleaner.start()
    node.clock.run_for(10 * SECONDS)
    assert len(offsets_before_damage(node)) == 8
    told = [record for record in caplog.records if "will not be compacted" in record.message]
    assert len(told) == 1
    assert "00000000000000000008.log at position 0" in told[0].message
    assert node.disk.exists(f"{FOLDER}/00000000000000000000.log")
    assert node.failures == []


def offsets_before_damage(node: SimulatedNode) -> list[int]:
    found = []
    log = partition(node).log
    for offset in range(8):
        part = read(log, offset, 1)
        assert part is not None
        found.append(int.from_bytes(part.read()[:8], "big"))
    return found


def test_a_disk_that_fails_while_it_is_cleaned_goes_offline() -> None:
    node = node_with_keys(50)

    def is_cleaned(operation: DiskCall) -> bool:
        return operation.kind == "sync" and operation.path.endswith(".log.cleaned")

    node.disk.fail_when(is_cleaned)
    node.clock.run_for(5 * SECONDS)
    assert node.failures == [
        "every data directory has failed, the last with: [Errno 5] Input/output error: "
        "'/data/t-0/00000000000000000000.log.cleaned'"
    ]


def test_a_full_disk_puts_cleaning_off() -> None:
    node = node_with_keys(50)
    node.clock.run_for(500)
    node.disk.capacity_bytes = 10_000
    node.clock.run_for(5 * SECONDS)
    assert len(offsets(node)) > 12, "what becomes nothing needs no room, the rest does"
    assert node.failures == []
    node.disk.capacity_bytes = None
    node.clock.run_for(5 * SECONDS)
    assert len(offsets(node)) == 12


def test_a_disk_that_fails_while_a_segment_that_has_waited_too_long_is_completed_goes_offline() -> None:
    node = node_with_keys(2, max_compaction_lag_ms="1000")
    node.create_topic("u", 1, **COMPACTED)
    node.disk.fail_when(lambda operation: operation.path.endswith("/t-0/00000000000000000002.log"))
    node.clock.run_for(5 * SECONDS)
    assert node.failures == [
        "every data directory has failed, the last with: [Errno 5] Input/output error: "
        "'/data/t-0/00000000000000000002.log'"
    ]
