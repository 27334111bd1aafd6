import itertools

import pytest

from quire.storage.directory.checkpoint_writer import CheckpointWriter
from quire.storage.directory.checkpoints import read_offsets
from simulator.disk import Crashed, SimDisk
from simulator.random import SimRandom
from tests.storage.flushing.test_log_flush import after_power_loss
from tests.storage.manual_jobs import ManualJobs

PATH = "data/recovery-point-offset-checkpoint"
KEY = ("orders", 0)


@pytest.fixture
def jobs() -> ManualJobs:
    return ManualJobs()


@pytest.fixture
def failures() -> list[Exception]:
    return []


@pytest.fixture
def writer(disk: SimDisk, jobs: ManualJobs, failures: list[Exception]) -> CheckpointWriter:
    return CheckpointWriter(disk, jobs, PATH, failures.append)


def test_in_the_background_the_file_changes_when_the_job_is_done(
    disk: SimDisk, writer: CheckpointWriter, jobs: ManualJobs
) -> None:
    writer.save_soon({KEY: 5})
    assert read_offsets(disk, PATH) == {}
    jobs.run_all()
    assert read_offsets(disk, PATH) == {KEY: 5}


def test_a_checkpoint_that_was_written_in_the_background_survives_a_power_cut_too(
    disk: SimDisk, writer: CheckpointWriter, jobs: ManualJobs
) -> None:
    for offset in (5, 6):
        writer.save_soon({KEY: offset})
        jobs.run_all()
    assert read_offsets(after_power_loss(disk), PATH) == {KEY: 6}


def test_a_power_cut_at_any_step_leaves_the_old_checkpoint_or_the_new_one() -> None:
    for step in itertools.count(1):
        disk = SimDisk()
        disk.make_dirs("data")
        disk.sync_dir(".")
        jobs = ManualJobs()
        writer = CheckpointWriter(disk, jobs, PATH, lambda error: pytest.fail(str(error)))
        writer.save_now({KEY: 5})
        disk.calls.crash_at = disk.operations + step
        writer.save_soon({KEY: 6})
        try:
            jobs.run_all()
        except Crashed:
            for seed in range(10):
                assert read_offsets(disk.crash(SimRandom(seed), reorder=seed > 4), PATH) in ({KEY: 5}, {KEY: 6})
        else:
            assert step > 4
            break


def test_an_unchanged_checkpoint_is_not_written_again(writer: CheckpointWriter, jobs: ManualJobs) -> None:
    writer.save_soon({KEY: 5})
    jobs.run_all()
    writer.save_soon({KEY: 5})
    assert len(jobs) == 0


def test_of_several_saves_during_a_job_the_last_one_counts(
    disk: SimDisk, writer: CheckpointWriter, jobs: ManualJobs
) -> None:
    for offset in (5, 6, 7):
        writer.save_soon({KEY: offset})
    assert len(jobs) == 1
    jobs.run_all()
    assert read_offsets(disk, PATH) == {KEY: 7}


def test_a_job_that_comes_late_does_not_undo_what_was_written_at_once(
    disk: SimDisk, writer: CheckpointWriter, jobs: ManualJobs
) -> None:
    writer.save_soon({KEY: 10})
    writer.save_now({KEY: 3})
    assert read_offsets(disk, PATH) == {KEY: 3}
    jobs.run_all()
    assert read_offsets(disk, PATH) == {KEY: 3}
    writer.save_soon({KEY: 10})
    jobs.run_all()
    assert read_offsets(disk, PATH) == {KEY: 10}


def test_a_job_that_comes_late_does_not_undo_what_was_on_disk_already(
    disk: SimDisk, writer: CheckpointWriter, jobs: ManualJobs
) -> None:
    writer.save_now({KEY: 3})
    writer.save_soon({KEY: 10})
    writer.save_now({KEY: 3})
    jobs.run_all()
    assert read_offsets(disk, PATH) == {KEY: 3}


def test_a_failing_disk_is_reported(
    disk: SimDisk, writer: CheckpointWriter, jobs: ManualJobs, failures: list[Exception]
) -> None:
    for kind in ("sync", "rename"):
        disk.fail_when(lambda operation, kind=kind: operation.kind == kind)  # type: ignore[misc]
        writer.save_soon({KEY: len(failures)})
        jobs.run_all()
    assert len(failures) == 2
    assert read_offsets(disk, PATH) == {}


def test_waiters_are_called_when_the_checkpoint_is_durable(
    disk: SimDisk, writer: CheckpointWriter, jobs: ManualJobs
) -> None:
    done: list[str] = []
    writer.save_soon({KEY: 5}, lambda: done.append("first"))
    writer.save_soon({KEY: 6}, lambda: done.append("second"))
    assert done == []
    jobs.run_all()
    assert done == ["first", "second"]
    writer.save_soon({KEY: 6}, lambda: done.append("third"))
    jobs.run_all()
    assert done == ["first", "second", "third"]
    assert read_offsets(disk.crash(SimRandom(1)), PATH) == {KEY: 6}


def test_waiters_are_not_called_when_the_disk_fails(
    disk: SimDisk, writer: CheckpointWriter, jobs: ManualJobs, failures: list[Exception]
) -> None:
    disk.fail_when(lambda operation: operation.kind == "sync_dir")
    writer.save_soon({KEY: 5}, lambda: pytest.fail("nothing was synced"))
    jobs.run_all()
    assert len(failures) == 1


@pytest.mark.parametrize("kind", ["write", "sync", "rename", "sync_dir"])
def test_a_failed_write_is_repeated_and_its_waiters_are_called_then(
    disk: SimDisk, writer: CheckpointWriter, jobs: ManualJobs, failures: list[Exception], kind: str
) -> None:
    done: list[str] = []
    disk.fail_when(lambda operation: operation.kind == kind)
    writer.save_soon({KEY: 5}, lambda: done.append("saved"))
    jobs.run_all()
    assert (len(failures), done) == (1, [])
    writer.save_soon({KEY: 5})
    jobs.run_all()
    assert (len(failures), done) == (1, ["saved"])
    assert read_offsets(disk.crash(SimRandom(1)), PATH) == {KEY: 5}


def test_a_failed_write_does_not_count_as_written(disk: SimDisk, writer: CheckpointWriter, jobs: ManualJobs) -> None:
    writer.save_soon({KEY: 10})
    disk.fail_when(lambda operation: operation.kind == "write")
    with pytest.raises(OSError, match="Input/output error"):
        writer.save_now({KEY: 3})
    jobs.run_all()
    assert read_offsets(disk, PATH) == {}, "what the job wrote was out of date"
    writer.save_soon({KEY: 3})
    jobs.run_all()
    assert read_offsets(disk, PATH) == {KEY: 3}


def test_a_reserve_lets_a_full_disk_have_one_more_checkpoint_and_is_made_up_when_there_is_room(
    disk: SimDisk, jobs: ManualJobs, failures: list[Exception]
) -> None:
    writer = CheckpointWriter(disk, jobs, PATH, failures.append, reserve_bytes=1000)
    for offset in (1, 3, 5):
        disk.capacity_bytes = None
        writer.save_soon({KEY: offset})
        jobs.run_all()
        disk.capacity_bytes = 0
        larger = {KEY: offset + 1, ("orders", 1): 7}
        writer.save_soon(larger)
        jobs.run_all()
        assert read_offsets(disk, PATH) == larger
    assert failures == []
    writer.save_soon({KEY: 9})
    jobs.run_all()
    assert len(failures) == 1, "a reserve is used once"


def test_a_checkpoint_saved_at_once_is_saved_again_if_there_is_no_reserve(disk: SimDisk, jobs: ManualJobs) -> None:
    writer = CheckpointWriter(disk, jobs, PATH, lambda error: pytest.fail(str(error)), reserve_bytes=1000)
    writer.save_now({KEY: 5})
    assert not disk.exists(f"{PATH}.reserve.tmp")
    writer.save_soon({KEY: 5})
    jobs.run_all()
    assert disk.exists(f"{PATH}.reserve.tmp")


def test_a_stop_writes_what_no_job_has_written() -> None:
    disk, jobs = SimDisk(), ManualJobs()
    disk.make_dirs("data")
    writer = CheckpointWriter(disk, jobs, "data/checkpoint", lambda error: pytest.fail(str(error)))
    writer.save_soon({("orders", 0): 5})
    jobs.stop()
    writer.finish()
    assert read_offsets(disk.crash(SimRandom(1)), "data/checkpoint") == {("orders", 0): 5}
