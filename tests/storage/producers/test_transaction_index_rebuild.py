"""A read that finds a wrong transaction index of a large segment leaves the rebuilding to a job."""

from collections.abc import Callable

import pytest

from quire.storage.log import Log
from quire.storage.producers.transaction_index_rebuild import TransactionIndexRebuild
from quire.storage.scanning.range_check import NotCheckedError, ReadCheck, read_checked
from quire.storage.segment import lookup
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER, open_log
from tests.storage.transactional_log import ABORTED, CONFIG, all_aborted, index_files, written


@pytest.fixture(autouse=True)
def every_segment_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "REBUILT_AT_ONCE_BYTES", 0)


def opened(disk: SimDisk) -> tuple[Log, dict[str, bytes]]:
    """A log whose completed transaction indexes have lost their ends since it was opened, and what was in all."""
    written(disk).close()
    log = open_log(disk, CONFIG, clean=True)
    right = index_files(disk)
    assert len(right) > 1
    for segment in log.segments[:-1]:
        if disk.exists(segment.transaction_index.path):
            disk.open(segment.transaction_index.path).truncate(33)
        segment.transaction_index.unload()
        segment.offset_index.unload()
    return log, right


def needed(log: Log) -> ReadCheck:
    with pytest.raises(NotCheckedError) as caught:
        log.aborted_transactions(0)
    assert isinstance(caught.value.check, TransactionIndexRebuild)
    return caught.value.check


def snapshots(disk: SimDisk) -> list[str]:
    return [f"{FOLDER}/{name}" for name in disk.list_dir(FOLDER) if name.endswith(".snapshot")]


def test_the_event_loop_leaves_it_to_a_job(disk: SimDisk) -> None:
    log, right = opened(disk)
    rebuild = needed(log)
    wrong = index_files(disk)
    rebuild.run()
    assert index_files(disk) == wrong, "the job changes nothing"
    rebuild.finish()
    assert index_files(disk) != wrong
    assert read_checked(lambda: log.aborted_transactions(0)) == ABORTED
    assert index_files(disk) == right
    assert read_checked(lambda: all_aborted(log)) == ABORTED


def test_snapshots_that_cannot_be_read_are_passed_over(disk: SimDisk) -> None:
    log, right = opened(disk)
    for path in snapshots(disk):
        disk.open(path).pwritev([b"?"], 0)
    rebuild = needed(log)
    before = snapshots(disk)
    rebuild.run()
    assert snapshots(disk) == before
    rebuild.finish()
    assert len(snapshots(disk)) == len(before) - 1, "the event loop has removed the one that was tried"
    assert read_checked(lambda: log.aborted_transactions(0)) == ABORTED
    assert index_files(disk) == right


def test_the_offset_index_may_be_wrong_too(disk: SimDisk) -> None:
    log, right = opened(disk)
    for segment in log.segments[:-1]:
        disk.open(segment.offset_index.path).truncate(3)
    assert read_checked(lambda: log.aborted_transactions(0)) == ABORTED
    assert index_files(disk) == right


def delete(log: Log) -> None:
    log.delete_records_before(log.end_offset)


def truncate(log: Log) -> None:
    log.truncate_to(1)


@pytest.mark.parametrize("change", [delete, truncate])
def test_the_result_for_a_segment_that_changed_during_the_job_is_dropped(
    disk: SimDisk, change: Callable[[Log], None]
) -> None:
    log, _ = opened(disk)
    rebuild = needed(log)
    rebuild.run()
    change(log)
    before = index_files(disk)
    rebuild.finish()
    assert index_files(disk) == before
