"""Start offsets of logs survive restarts, even if a log has to begin before its stored start."""

from quire.storage.directory.log_directory import LogDirectory
from quire.storage.log import Log
from simulator.clock import SimClock
from simulator.disk import SimDisk
from simulator.random import SimRandom
from tests.storage.batches import SMALL_SEGMENTS, append_values, replicate
from tests.storage.batches import batch as made
from tests.storage.loading import load_logs
from tests.storage.manual_jobs import ManualJobs


def start(disk: SimDisk, jobs: ManualJobs) -> LogDirectory:
    directory = LogDirectory.open(
        disk, "data", clock=SimClock(), jobs=jobs, random=SimRandom(1), on_failure=lambda directory, error: None
    )
    load_logs(directory, jobs, lambda topic: SMALL_SEGMENTS)
    return directory


def nine_records(disk: SimDisk, jobs: ManualJobs) -> tuple[LogDirectory, Log]:
    directory = start(disk, jobs)
    log = directory.open_log("orders", 0, SMALL_SEGMENTS)
    append_values(log, *[bytes(50)] * 9)
    return directory, log


def test_a_log_that_begins_again_at_an_earlier_offset_is_found_there_after_a_kill() -> None:
    disk, jobs = SimDisk(), ManualJobs()
    directory, log = nine_records(disk, jobs)
    directory.delete_records("orders", 0, 8, lambda: None)
    jobs.run_all()
    assert log.start_offset == 8
    directory.start_over(log, 3)
    replicate(log, made(b"d", base_offset=3, leader_epoch=1), made(b"e", base_offset=4, leader_epoch=1))
    again = start(disk.kill(), ManualJobs()).logs["orders", 0]
    assert (again.start_offset, again.end_offset) == (3, 5)


def test_a_truncation_below_the_start_is_found_there_after_a_kill() -> None:
    disk, jobs = SimDisk(), ManualJobs()
    directory, log = nine_records(disk, jobs)
    directory.delete_records("orders", 0, 8, lambda: None)
    jobs.run_all()
    directory.truncate([(log, 3)])
    replicate(log, made(b"d", base_offset=3, leader_epoch=1))
    again = start(disk.kill(), ManualJobs()).logs["orders", 0]
    assert (again.start_offset, again.end_offset) == (3, 4)


def test_a_start_that_was_to_come_is_none_of_a_log_that_begins_again_before_it() -> None:
    disk, jobs = SimDisk(), ManualJobs()
    directory, log = nine_records(disk, jobs)
    told: list[int] = []
    directory.delete_records("orders", 0, 8, lambda: told.append(log.start_offset))
    directory.start_over(log, 3)
    replicate(log, made(b"d", base_offset=3, leader_epoch=1))
    jobs.run_all()
    assert (log.start_offset, log.end_offset, told) == (3, 4, [3])
    directory.checkpoint()
    jobs.run_all()
    again = start(disk.kill(), ManualJobs()).logs["orders", 0]
    assert (again.start_offset, again.end_offset) == (3, 4)
