"""Opening the logs of a directory at a start: in jobs, a few logs each, and without changing state off the loop."""

import errno

import pytest

from quire.storage.directory import log_loading
from quire.storage.directory.log_directory import LogDirectory
from quire.storage.few_jobs import FewJobs
from simulator.random import SimRandom
from tests.storage.batches import SMALL_SEGMENTS, append_values, values_of
from tests.storage.directory.directory_world import World, config_of
from tests.storage.loading import load_logs


@pytest.fixture
def killed() -> World:
    """The disk of a killed process that had five logs with one record each."""
    world = World()
    directory = world.start()
    for partition in range(5):
        append_values(directory.open_log("orders", partition, SMALL_SEGMENTS), bytes([partition]))
    world.killed().release()
    return world


def unexpected(error: Exception) -> None:
    raise error


def test_logs_are_opened_by_jobs_and_added_when_these_are_done(killed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_loading, "_LOGS_PER_JOB", 2)
    directory = killed.killed()
    loaded: list[bool] = []
    directory.load_logs(config_of, FewJobs(killed.jobs, 1), lambda: loaded.append(True), unexpected)
    counts = [len(directory.logs)]
    while not loaded:
        assert len(killed.jobs) == 1, "one job at a time"
        killed.jobs.run_next()
        counts.append(len(directory.logs))
    assert counts == [0, 2, 4, 5]
    assert directory.unopened == {}
    assert [values_of(log) for log in directory.logs.values()] == [[bytes([number])] for number in range(5)]


def test_an_empty_directory_is_loaded_at_once() -> None:
    world = World()
    directory = world.open()
    loaded: list[bool] = []
    directory.load_logs(config_of, FewJobs(world.jobs, 1), lambda: loaded.append(True), unexpected)
    assert (loaded, len(world.jobs)) == ([True], 0)


def test_a_stop_opens_no_further_log_and_the_next_start_finds_all(
    killed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_loading, "_LOGS_PER_JOB", 2)
    directory = killed.killed()
    directory.load_logs(config_of, FewJobs(killed.jobs, 1), lambda: pytest.fail("it was stopped"), unexpected)
    killed.jobs.run_next()
    closable: list[bool] = []
    directory.prepare_close(lambda: closable.append(True))
    killed.jobs.run_all()
    assert closable == [True]
    assert len(directory.logs) == 2
    assert len(directory.unopened) == 3
    directory.close()
    again = killed.open()
    assert again.clean_broker_epoch is None, "not every log was closed"
    load_logs(again, killed.jobs, config_of)
    assert [values_of(log) for log in again.logs.values()] == [[bytes([number])] for number in range(5)]


def test_a_log_that_finds_no_room_is_tried_again_with_the_room_of_the_reserve(killed: World) -> None:
    file = killed.disk.open("data/orders-1/00000000000000000000.log")
    file.pwritev([b"torn"], file.size())
    directory = killed.killed()
    released: list[bool] = []

    class OnceMore:
        def release(self) -> bool:
            released.append(True)
            return True

    directory.reserve = OnceMore()  # type: ignore[assignment]
    killed.disk.fail_when(lambda operation: operation.kind == "truncate", errno.ENOSPC, times=1)
    load_logs(directory, killed.jobs, config_of)
    assert released == [True]
    assert len(directory.logs) == 5


def test_an_error_that_is_not_the_disks_is_reported(killed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr("quire.storage.directory.log_opener.LogOpener.open", broken)
    directory = killed.killed()
    failures: list[Exception] = []
    directory.load_logs(config_of, FewJobs(killed.jobs, 1), lambda: pytest.fail("it failed"), failures.append)
    killed.jobs.run_all()
    assert [str(failure) for failure in failures] == ["a defect"]


def test_a_long_recovery_reports_how_far_it_is(
    killed: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log_loading, "_LOGS_PER_JOB", 2)
    directory = killed.killed()
    loaded: list[bool] = []
    with caplog.at_level("INFO", logger="quire.storage"):
        directory.load_logs(config_of, FewJobs(killed.jobs, 1), lambda: loaded.append(True), unexpected)
        killed.clock.run_for(6_000)
        while not loaded:
            killed.jobs.run_next()
    assert [record.getMessage() for record in caplog.records] == ["opening the logs in data: 2 of 5 are open"]


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOSPC])
def test_a_directory_that_cannot_be_listed_for_a_moment_fails_the_start(killed: World, number: int) -> None:
    """Otherwise its logs would seem to be missing, and empty ones would take their place."""
    directory = killed.killed()
    killed.disk.fail_when(lambda call: call.kind == "list", number, times=1)
    failures: list[Exception] = []
    directory.load_logs(
        config_of, FewJobs(killed.jobs, 1), lambda: pytest.fail("its logs are not known"), failures.append
    )
    assert directory.failure is None
    assert [failure.errno for failure in failures if isinstance(failure, OSError)] == [number]


def test_directories_together_leave_threads_to_other_jobs() -> None:
    world = World()
    jobs = FewJobs(world.jobs, 2)
    directories = []
    for number in range(4):
        world.disk.make_dirs(f"data{number}/orders-0")
        directory = LogDirectory.open(
            world.disk,
            f"data{number}",
            clock=world.clock,
            jobs=world.jobs,
            random=SimRandom(1),
            on_failure=lambda _directory, error: pytest.fail(str(error)),
        )
        directory.load_logs(config_of, jobs, lambda: None, unexpected)
        directories.append(directory)
    assert len(world.jobs) == 2
    world.jobs.run_all()
    assert [len(directory.logs) for directory in directories] == [1, 1, 1, 1]
