"""Bugs put in on purpose: the simulator must find each of them within a few seeds, or it would find nothing."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from quire.protocol.records import BatchHeader
from quire.raft.log_store import LogStore
from quire.seams import File
from quire.storage import batch_scan
from quire.storage.append_info import AppendInfo
from quire.storage.log import Log
from quire.storage.log_flush import FlushPlan
from quire.storage.producer_state import ProducerState, RememberedBatch
from simulator.plan import plan_of
from simulator.world import World

MOST_SEEDS = 25


def broken_promise(**faults: int) -> str:
    """The promise that does not hold, with faults of the kind that the bug does not survive."""
    for seed in range(MOST_SEEDS):
        chosen = {name.replace("_", " "): weight for name, weight in faults.items()}
        plan = replace(plan_of(seed, scale=0.5), faults=chosen, fault_pause_ms=150.0)
        outcome = World(seed, plan).run()
        if outcome.violation is not None:
            return outcome.violation.partition(":")[0]
    return "none"


def test_a_recovery_that_does_not_compare_checksums_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def trusting(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
        return batch_scan.headers(file, position, end)

    monkeypatch.setattr(batch_scan, "checked", trusting)
    assert broken_promise(power_loss=1) in ("no broken batch is served", "what is read was sent")


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
    assert broken_promise() == "an offset keeps its record"


def test_producers_forgotten_by_their_partition_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: ProducerState, header: BatchHeader) -> RememberedBatch | None:
        return None

    monkeypatch.setattr(ProducerState, "check", forgetful)
    assert broken_promise(broken_connections=1) == "an idempotent producer's record is in the log once"


def test_a_flush_that_only_says_so_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FlushPlan, "run", lambda self: None)
    assert broken_promise() == "what was flushed survives a power loss"


def test_metadata_that_is_committed_before_it_is_on_disk_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(self: LogStore, done: Callable[[int], None]) -> None:
        done(self._log.end_offset)

    monkeypatch.setattr(LogStore, "sync", hasty)
    assert broken_promise(power_loss=1) == "committed metadata survives everything"
