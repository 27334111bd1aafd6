import pytest

from quire.storage.flushing.flusher import Flusher
from quire.storage.leader_epochs import read_epochs
from quire.storage.log import Log
from simulator.disk import SimDisk
from simulator.random import SimRandom
from tests.storage.batches import FOLDER, append_values, open_log
from tests.storage.manual_jobs import ManualJobs


@pytest.fixture
def jobs() -> ManualJobs:
    return ManualJobs()


@pytest.fixture
def failures() -> list[Exception]:
    return []


@pytest.fixture
def flusher(jobs: ManualJobs, failures: list[Exception]) -> Flusher:
    return Flusher(jobs, failures.append)


def log_with_epoch(disk: SimDisk) -> Log:
    """Its leader epoch is on disk: flushes take one job each."""
    log = open_log(disk)
    log.assign_epoch(0)
    log.flush()
    return log


def test_a_new_leader_epoch_takes_a_second_job(disk: SimDisk, flusher: Flusher, jobs: ManualJobs) -> None:
    log = log_with_epoch(disk)
    append_values(log, b"a", leader_epoch=3)
    told: list[int] = []
    flusher.flush(log, lambda: told.append(log.recovery_point))
    jobs.run_next()
    assert (told, log.recovery_point, len(jobs)) == ([], 0, 1)
    jobs.run_next()
    assert (told, len(jobs)) == ([1], 0)
    assert read_epochs(disk.crash(SimRandom(1)), FOLDER).entries == [(3, 0)]


def test_an_error_between_the_two_jobs_fails_the_flush(
    disk: SimDisk, flusher: Flusher, jobs: ManualJobs, failures: list[Exception]
) -> None:
    log = log_with_epoch(disk)
    append_values(log, b"a", leader_epoch=3)
    told: list[str] = []
    flusher.flush(log, lambda: told.append("durable"), lambda: told.append("failed"))
    disk.fail_when(lambda call: call.kind == "rename")
    jobs.run_all()
    assert told == ["failed"] and len(failures) == 1
    assert not log.flushing and log.recovery_point == 0


def test_waiters_are_called_when_the_data_is_durable(disk: SimDisk, flusher: Flusher, jobs: ManualJobs) -> None:
    log = open_log(disk)
    append_values(log, b"a")
    told: list[int] = []
    flusher.flush(log, lambda: told.append(log.recovery_point))
    assert told == []
    jobs.run_all()
    assert told == [1]


def test_with_nothing_to_flush_the_answer_comes_at_once(disk: SimDisk, flusher: Flusher, jobs: ManualJobs) -> None:
    told: list[str] = []
    flusher.flush(open_log(disk), lambda: told.append("durable"))
    assert told == ["durable"]
    assert len(jobs) == 0


def test_fifty_requests_during_a_flush_share_the_next_one(disk: SimDisk, flusher: Flusher, jobs: ManualJobs) -> None:
    log = log_with_epoch(disk)
    append_values(log, b"a")
    told: list[tuple[int, int]] = []
    flusher.flush(log, lambda: told.append((-1, log.recovery_point)))
    for writer in range(50):
        append_values(log, b"b")
        flusher.flush(log, lambda writer=writer: told.append((writer, log.recovery_point)))  # type: ignore[misc]
    assert len(jobs) == 1
    jobs.run_next()
    assert told == [(-1, 1)]
    assert len(jobs) == 1
    jobs.run_next()
    assert told[1:] == [(writer, 51) for writer in range(50)]
    assert len(jobs) == 0


def test_the_next_flush_begins_even_if_a_waiter_of_this_one_fails(
    disk: SimDisk, flusher: Flusher, jobs: ManualJobs
) -> None:
    log = log_with_epoch(disk)
    append_values(log, b"a")
    told: list[str] = []
    flusher.flush(log, lambda: told[0])  # type: ignore[arg-type]
    append_values(log, b"b")
    flusher.flush(log, lambda: told.append("durable"))
    with pytest.raises(IndexError):
        jobs.run_next()
    jobs.run_all()
    assert told == ["durable"]


def test_waiters_are_called_in_the_order_they_came(disk: SimDisk, flusher: Flusher, jobs: ManualJobs) -> None:
    log = open_log(disk)
    append_values(log, b"a")
    told: list[int] = []
    for writer in range(3):
        flusher.flush(log, lambda writer=writer: told.append(writer))  # type: ignore[misc]
    jobs.run_all()
    assert told == [0, 1, 2]


def test_a_failing_disk_is_reported_and_no_flush_is_acknowledged(
    disk: SimDisk, flusher: Flusher, jobs: ManualJobs, failures: list[Exception]
) -> None:
    log = open_log(disk)
    append_values(log, b"a")
    told: list[str] = []
    flusher.flush(log, lambda: told.append("durable"))
    flusher.flush(log, lambda: told.append("durable too"))
    disk.fail_when(lambda operation: operation.kind == "sync")
    jobs.run_all()
    assert (told, len(failures), log.recovery_point) == ([], 1, 0)


@pytest.mark.parametrize("has_run", [False, True])
def test_deleting_a_log_during_its_flush_is_not_a_failure(
    disk: SimDisk, flusher: Flusher, jobs: ManualJobs, failures: list[Exception], has_run: bool
) -> None:
    log = open_log(disk)
    append_values(log, b"a")
    told: list[str] = []
    for _ in range(2):
        flusher.flush(
            log,
            lambda: told.append("durable"),
            lambda: told.append("failed"),
            deleted=lambda: told.append("deleted"),
        )
    log.close_files()
    if not has_run:
        disk.rename(log.path, log.path + "-delete")
    assert told == []
    jobs.run_all()
    assert (failures, told) == ([], ["deleted"] * 2)
    assert not flusher._next, "nothing is kept for it"


def test_when_a_flush_fails_every_waiter_gets_the_error_including_later_ones(
    disk: SimDisk, flusher: Flusher, jobs: ManualJobs, failures: list[Exception]
) -> None:
    log = open_log(disk)
    append_values(log, b"a")
    told: list[str] = []
    flusher.flush(log, lambda: told.append("durable"), lambda: told.append("not the first"))
    flusher.flush(log, lambda: told.append("durable"), lambda: told.append(f"nor the second: {len(failures)} failure"))
    disk.fail_when(lambda operation: operation.kind == "sync")
    jobs.run_all()
    assert told == ["not the first", "nor the second: 1 failure"]


def test_a_file_that_cannot_be_opened_for_the_next_flush_blocks_no_waiter(
    disk: SimDisk, flusher: Flusher, jobs: ManualJobs, failures: list[Exception]
) -> None:
    log = open_log(disk)
    append_values(log, b"a")
    disk = disk.kill()
    log = open_log(disk)  # Its files are closed until they are needed.
    told: list[str] = []
    disk.fail_when(lambda operation: operation.kind == "open", times=1)
    flusher.flush(log, lambda: told.append("durable"), lambda: told.append("not durable"))
    assert (told, len(failures), len(jobs)) == (["not durable"], 1, 0)
    flusher.flush(log, lambda: told.append("durable"))
    jobs.run_all()
    assert told == ["not durable", "durable"]
