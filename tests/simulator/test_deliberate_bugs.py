"""Bugs put in on purpose: the simulator must find each of them within a few seeds, or it would find nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from quire.protocol.internal_topics import CLUSTER_METADATA
from quire.protocol.records import BatchHeader
from quire.raft.log_store import LogStore
from quire.seams import File
from quire.storage.append_info import AppendInfo
from quire.storage.deleting.retention import Expired
from quire.storage.directory.checkpoints import TopicPartition
from quire.storage.directory.remembered_offsets import RememberedOffsets
from quire.storage.flushing.log_flush import FlushPlan
from quire.storage.log import Log
from quire.storage.producers.producer_state import ProducerState, RememberedBatch
from quire.storage.scanning import batch_scan, segment_scan
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.batch_walk_native import BatchWalk
from quire.storage.scanning.segment_scan import Visitor
from simulator.plan import plan_of
from simulator.world import World

MOST_SEEDS = 25
NOTHING_TOLD_IS_LOST = "with flush.messages=1 a power loss loses nothing that a client has seen"


def broken_promise(topic_settings: Mapping[str, str] = {}, **faults: int) -> str:
    """The promise that the bug breaks, and topics and faults with which the simulator finds it."""
    for seed in range(MOST_SEEDS):
        chosen = {name.replace("_", " "): weight for name, weight in faults.items()}
        plan = plan_of(seed, scale=0.5)
        topics = [replace(topic, settings={**topic.settings, **topic_settings}) for topic in plan.topics]
        plan = replace(plan, topics=topics, faults=chosen, fault_pause_ms=150.0)
        outcome = World(seed, plan).run()
        if outcome.violation is not None:
            return outcome.violation.partition(":")[0]
    return "none"


def test_a_recovery_that_does_not_compare_checksums_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def trusting(
        file: File, position: int, end: int, walk: BatchWalk, visitor: Visitor, *, enough: int | None = None
    ) -> int:
        for at, header in batch_scan.headers(file, position, end):
            refused = visitor.visit(header, at, walk.next_offset)
            if refused is not None:
                raise DamagedBatchError(file.path, at, refused)
            if header.producer_id >= 0:
                visitor.visit_producer(header)
            walk.take(at, header.size, header.last_offset, header.max_timestamp, header.record_count)
        return end

    monkeypatch.setattr(segment_scan, "scan", trusting)
    # Or the check before the first read finds the damage, and a reader gets an error without a cause.
    found = ("no broken batch is served", "what is read was sent", "errors have a cause")
    assert broken_promise(power_loss=1) in found


def test_an_acknowledgement_without_a_write_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    write = Log.append
    calls = 0

    def forgetful(
        self: Log, records: memoryview | bytearray, headers: Sequence[BatchHeader], leader_epoch: int, now_ms: int
    ) -> AppendInfo:
        nonlocal calls
        calls += 1
        if calls % 100:
            return write(self, records, headers, leader_epoch, now_ms)
        last_offset = self.end_offset + headers[-1].last_offset_delta
        return AppendInfo(self.end_offset, last_offset, self.start_offset, headers[-1].max_timestamp)

    monkeypatch.setattr(Log, "append", forgetful)
    promises = ("an offset keeps its record", "the high watermark never goes back for a reader", "errors have a cause")
    assert broken_promise() in promises, "or a wait for the sync never ends"


def test_producers_forgotten_by_their_partition_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: ProducerState, header: BatchHeader, *, from_zero: bool = False) -> RememberedBatch | None:
        return None

    monkeypatch.setattr(ProducerState, "check", forgetful)
    assert broken_promise(broken_connections=1) == "an idempotent producer's record is in the log once"


def test_a_flush_that_does_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = FlushPlan.run

    def lazy(self: FlushPlan) -> None:
        if CLUSTER_METADATA in self.folder:
            run(self)

    monkeypatch.setattr(FlushPlan, "run", lazy)
    # Or the start takes the log for a damaged one, and a reader gets an error without a cause.
    found = ("what was flushed survives a power loss", "a log has no holes", "errors have a cause")
    assert broken_promise() in found


def test_an_acknowledgement_that_does_not_wait_for_the_disk_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Log, "is_flush_due", False)
    assert broken_promise(power_loss=1) == NOTHING_TOLD_IS_LOST


def test_metadata_that_is_committed_before_it_is_on_disk_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(self: LogStore, done: Callable[[int], None]) -> None:
        done(self._log.end_offset)

    monkeypatch.setattr(LogStore, "sync", hasty)
    # A block of producer ids is metadata too, and the white-box checks read the log itself.
    promises = (
        "committed metadata survives everything",
        "a producer id is given once",
        "what is committed in the metadata log is the same on every node, and stays",
    )
    assert broken_promise(power_loss=1) in promises


SHORT_LIVED = {
    "internal.segment.bytes": "4000",
    "compression.type": "uncompressed",
    "retention.bytes": "20000",
    "retention.ms": "2000",
}
UNTIMELY = ("no record is deleted unasked or before it expires", "the high watermark never goes back for a reader")


def test_a_retention_that_takes_one_segment_too_many_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    find = Log.find_expired

    def greedy(self: Log, high_watermark: int, now_ms: int) -> Expired | None:
        found = find(self, high_watermark, now_ms)
        if found is None or found.segment_count >= len(self.segments):
            return found
        behind = [*list(self._segments)[found.segment_count + 1 :], None][0]
        return found._replace(start_offset=self.end_offset if behind is None else behind.base_offset)

    monkeypatch.setattr(Log, "find_expired", greedy)
    assert broken_promise(SHORT_LIVED) in UNTIMELY


def test_a_retention_that_keeps_less_than_the_size_asked_for_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    find = Log.find_expired

    def stingy(self: Log, high_watermark: int, now_ms: int) -> Expired | None:
        kept, self.config = self.config, self.config._replace(retention_bytes=min(self.config.retention_bytes, 500))
        try:
            return find(self, high_watermark, now_ms)
        finally:
            self.config = kept

    monkeypatch.setattr(Log, "find_expired", stingy)
    assert broken_promise(SHORT_LIVED) in UNTIMELY


def test_a_start_that_is_shown_before_it_is_on_disk_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(self: RememberedOffsets, key: TopicPartition, offset: int, then: Callable[[], None]) -> None:
        self._coming_start_offsets[key] = offset
        then()

    monkeypatch.setattr(RememberedOffsets, "will_start_at", hasty)
    assert broken_promise(power_loss=1) == "the log start offset never goes back"
