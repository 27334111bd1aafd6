"""A gap in a compacted log: a loss if Quire alone wrote it, possibly compaction if Apache Kafka may have."""

import errno
from collections.abc import Callable, Mapping

import pytest

from quire.protocol.records.batch import walk_batches
from quire.storage.directory.checkpoints import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    TopicPartition,
    read_offsets,
    write_offsets,
)
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.log import Log
from quire.storage.log_config import LogConfig
from quire.storage.recovery.gap_mark import MARK
from simulator.clock import SimClock
from simulator.disk import Crashed, SimDisk
from simulator.random import SimRandom
from tests.storage.batches import append_values, values_of
from tests.storage.loading import load_logs
from tests.storage.manual_jobs import ManualJobs

COMPACTED = LogConfig(segment_bytes=300, index_interval_bytes=100, compact=True, delete=False)
ORDERS = ("orders", 0)
VALUES = [bytes([letter]) * 50 for letter in b"abcdefgh"]
"""Batches of which two fit into a segment."""


def started(disk: SimDisk, config: LogConfig = COMPACTED) -> LogDirectory:
    jobs = ManualJobs()
    directory = LogDirectory.open(
        disk,
        "data",
        clock=SimClock(),
        jobs=jobs,
        random=SimRandom(1),
        on_failure=lambda _directory, error: pytest.fail(str(error)),
    )
    load_logs(directory, jobs, lambda topic: config)
    return directory


def filled() -> SimDisk:
    """The directory of a killed process, with a log of four segments, none of which is known to be on disk."""
    disk = SimDisk()
    append_values(started(disk).open_log(*ORDERS, COMPACTED), *VALUES)
    return disk.kill()


def compacted_by_kafka() -> SimDisk:
    """Everything is on disk, but no checkpoint says so."""
    disk = SimDisk()
    append_values(started(disk).open_log(*ORDERS, COMPACTED), *VALUES)
    disk = without_second_segment(disk.kill())
    for name in (RECOVERY_POINTS, HIGH_WATERMARKS):
        write_offsets(disk, f"data/{name}", {})
    started(disk).close()
    disk.remove("data/.kafka_cleanshutdown")
    for name in (RECOVERY_POINTS, HIGH_WATERMARKS):
        write_offsets(disk, f"data/{name}", {})
    return disk.kill()


def without_second_segment(disk: SimDisk) -> SimDisk:
    disk.remove("data/orders-0/00000000000000000002.log")
    return disk


def checkpoint(disk: SimDisk, name: str) -> Mapping[TopicPartition, int]:
    return read_offsets(disk, f"data/{name}")


def rewritten_by_kafka(disk: SimDisk, name: str) -> None:
    write_offsets(disk, f"data/{name}", {key: value for key, value in checkpoint(disk, name).items() if key != MARK})


def test_the_first_start_marks_a_directory_permanently() -> None:
    disk = SimDisk()
    started(disk)
    for seed in range(5):
        after = disk.crash(SimRandom(seed))
        assert MARK in checkpoint(after, RECOVERY_POINTS)
        assert MARK in checkpoint(after, HIGH_WATERMARKS)


def test_a_gap_in_what_quire_wrote_ends_the_log() -> None:
    assert values_of(started(without_second_segment(filled())).logs[ORDERS]) == VALUES[:2]


@pytest.mark.parametrize("name", [RECOVERY_POINTS, HIGH_WATERMARKS])
def test_a_gap_is_accepted_once_kafka_has_written_either_checkpoint(name: str) -> None:
    disk = without_second_segment(filled())
    rewritten_by_kafka(disk, name)
    assert values_of(started(disk).logs[ORDERS]) == VALUES[:2] + VALUES[4:]


def test_a_log_that_another_program_compacted_is_complete_after_quire_has_crashed() -> None:
    disk = without_second_segment(filled())
    rewritten_by_kafka(disk, RECOVERY_POINTS)
    started(disk)
    for disk_after in (disk.kill(), disk.crash(SimRandom(1))):
        assert values_of(started(disk_after).logs[ORDERS])[:6] == VALUES[:2] + VALUES[4:]


@pytest.mark.parametrize("loses", ["power", "the process"])
def test_a_crash_at_any_step_of_taking_a_directory_over_loses_nothing(loses: str) -> None:
    for step in range(1, 100):
        disk = compacted_by_kafka()
        disk.calls.crash_at = disk.operations + step
        try:
            started(disk)
        except Crashed:
            after = disk.kill() if loses == "the process" else disk.crash(SimRandom(step), reorder=step % 2 == 0)
            assert values_of(started(after).logs[ORDERS]) == VALUES[:2] + VALUES[4:], step
        else:
            assert step > 20
            return
    pytest.fail("taking over does not end")


def test_while_a_log_cannot_be_opened_the_directory_is_not_marked() -> None:
    disk = filled()
    rewritten_by_kafka(disk, RECOVERY_POINTS)
    path = "data/orders-0/00000000000000000004.log"
    disk.fail_when(lambda operation: operation.path == path and operation.kind == "open", 24)
    assert ORDERS in started(disk).unopened
    assert MARK not in checkpoint(disk, RECOVERY_POINTS)


def test_high_watermarks_are_remembered_without_the_mark() -> None:
    disk = SimDisk()
    directory = started(disk)
    jobs = directory._jobs
    assert isinstance(jobs, ManualJobs)
    directory.checkpoint_high_watermarks({ORDERS: 17})
    jobs.run_all()
    assert directory.read_high_watermarks() == {ORDERS: 17}
    assert checkpoint(disk, HIGH_WATERMARKS) == {MARK: 0, ORDERS: 17}


@pytest.mark.parametrize("missing", ["00000000000000000002.log", None], ids=["between segments", "within a segment"])
def test_a_topic_that_is_not_compacted_any_more_keeps_its_gaps_without_recovery_points(missing: str | None) -> None:
    """Operators remove that file to have everything scanned."""
    disk = filled()
    kept = VALUES
    if missing is not None:
        disk.remove(f"data/orders-0/{missing}")
        kept = VALUES[:2] + VALUES[4:]
    else:
        cut_first_batch_of_segment(disk, 2)
        kept = VALUES[:2] + VALUES[3:]
    write_offsets(disk, f"data/{CLEANED_OFFSETS}", {ORDERS: 4})
    if disk.exists(f"data/{RECOVERY_POINTS}"):
        disk.remove(f"data/{RECOVERY_POINTS}")
    not_compacted = COMPACTED._replace(compact=False, delete=True)
    assert values_of(started(disk, not_compacted).logs[ORDERS]) == kept
    assert values_of(started(disk.kill(), not_compacted).logs[ORDERS]) == kept, "and once more"


def cut_first_batch_of_segment(disk: SimDisk, base_offset: int) -> None:
    path = f"data/orders-0/{base_offset:020d}.log"
    content = disk.read_file(path)
    (_, second) = walk_batches(content)
    file = disk.open(path)
    file.pwritev([content[second.position :]], 0)
    file.truncate(len(content) - second.position)
    file.close()


@pytest.mark.parametrize(
    ("kind", "number"), [("sync", errno.EMFILE), ("sync_dir", errno.EMFILE), ("sync_dir", errno.ENOSPC)]
)
def test_a_directory_is_not_taken_over_while_its_logs_cannot_be_flushed(
    kind: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marked as Quire's with a low recovery point, the gaps that Kafka's compaction left would count as losses."""
    disk = compacted_by_kafka()
    flush_all = LogDirectory._flush_all

    def failing(self: LogDirectory, logs: list[Log], then: Callable[[], None]) -> None:
        disk.fail_when(lambda call: call.kind == kind and "orders-0" in call.path, number, times=1)
        flush_all(self, logs, then)

    with monkeypatch.context() as patching:
        patching.setattr(LogDirectory, "_flush_all", failing)
        directory = started(disk)
    assert values_of(directory.logs[ORDERS]) == VALUES[:2] + VALUES[4:]
    again = started(disk.kill())
    assert values_of(again.logs[ORDERS]) == VALUES[:2] + VALUES[4:]
